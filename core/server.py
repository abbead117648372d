"""Server: all that a frontend may call.

frontend ─► [Server] ─► the chain of a model version.  Loop thread only, but for what says otherwise.
It knows no protocol: names, versions and parameters come as values, answers leave as dicts in the
shape of the v2 protocol's JSON (features of the KServe v2 specification and Triton's extensions).
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import core
from core import config as configuration
from core.access import Gate
from core.account import MemoryAccount
from core.backend import Backend
from core.caches import open_cache
from core.config import ModelConfig, Signature
from core.devices import gpus
from core.errors import Loading, invalid, unavailable, unsupported
from core.fleet.everywhere import Everywhere
from core.fleet.management import Management
from core.fleet.member import Member
from core.heap import Trimmer
from core.lifecycle import ModelManager, ModelVersion
from core.lifecycle.places import asked_in_a_load
from core.lifecycle.report import named_entry
from core.memory import CudaRegions, SharedMemoryRegions
from core.options import Options
from core.pipeline.endpoint import ModelEndpoint as ModelEndpoint
from core.pipeline.endpoint_table import EndpointTable as EndpointTable
from core.pipeline.instances.rate_limiter import RateLimiter
from core.repository import Place as Place
from core.repository import Repository
from core.request import NEWEST, InferenceRequest
from core.response import Reply
from core.telemetry import log
from core.telemetry.access_log import AccessLog
from core.telemetry.families import Family
from core.telemetry.metrics.collect import collect
from core.telemetry.metrics.watch import Watch
from core.telemetry.tracing import Tracer
from core.watched import WatchedFiles

EXTENSIONS = (
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
)
WITHOUT_GPUS = tuple(each for each in EXTENSIONS if each != "cuda_shared_memory")


class State(enum.Enum):
    INITIALIZING = "initializing"
    READY = "ready"
    EXITING = "exiting"


class Server:
    """The models of the repositories, each version behind an endpoint.

    Requests go through `infer`, or through a ModelEndpoint that was found with `endpoint`.

    find_backend         name → Backend; may block; None for those that are installed or lie in
                         --backend-directory
    member               this process among several workers, None if it is the whole server
    repositories         more of them than the options name, opened
    management           what clients ask about the whole server; what is below is of this process
    shared_memory        regions that clients have registered, for inputs and outputs of requests
    cuda_shared_memory   those of them that are in memory of GPUs
    access               who may call, which frontends ask before anything else; None: anybody may
    files                that are read again when they change: certificates of frontends, tokens, keys
    tracing              traces requests; frontends look at `tracing.on`
    watch                looks at machine and process from the time on that metrics are served
    access_log           has a line for every request; None for none
    """

    def __init__(
        self,
        options: Options,
        *,
        find_backend: Callable[[str], Backend] | None = None,
        member: Member | None = None,
        repositories: Sequence[Repository] = (),
    ):
        self.options = options
        self.name = options.id
        self.version = core.__version__
        self.extensions = EXTENSIONS if gpus() else WITHOUT_GPUS
        self.state = State.INITIALIZING
        self.cache = open_cache(options.cache_config)
        self.limiter = (
            RateLimiter(options.rate_limit_resource)
            if options.rate_limit == "execution_count"
            else None
        )
        self.account = MemoryAccount.of(options)
        self.account.on_give = Trimmer().freed
        self.shared_memory = SharedMemoryRegions(options.allow_client_shm)
        self.cuda_shared_memory = CudaRegions(self.shared_memory, gpus())
        self.files = WatchedFiles(options.reload_secs)
        self.access = Gate.of(options, member.limits if member else None)
        if self.access is not None:
            self.access.watch(self.files)
        self.access_log = AccessLog.of(options)
        self.tracing = Tracer(options, suffix=f".worker-{member.number}" if member else "")
        self.watch = Watch(options, member.number if member else None)
        self._manager = ModelManager(
            options,
            asyncio.get_running_loop(),
            self,
            gpus=gpus(),
            find_backend=find_backend,
            agree=member.agree if member else None,
            repositories=repositories,
        )
        self.management = Everywhere(self, member) if member else Management(self)

    async def start(self) -> None:
        """Load the models that the control mode says; frontends may be open already.

        Raises CoreError if a model fails and options.exit_on_error.
        """
        await self._manager.start()
        if self.state is State.INITIALIZING:
            self.state = State.READY

    async def stop(self, timeout_s: float) -> int:
        """Refuse new requests, finish those in flight, unload all models.

        Returns the number of model versions that still had requests in flight after `timeout_s`.
        """
        self.state = State.EXITING
        loop = asyncio.get_running_loop()
        end_s = loop.time() + timeout_s
        try:
            return await self._manager.stop(timeout_s)
        finally:
            self.files.close()
            self.watch.stop()
            self.shared_memory.close()
            if self.cache is not None:
                await self.cache.close()
            await self.tracing.close(end_s - loop.time())
            if self.access_log is not None:
                await loop.run_in_executor(None, self.access_log.close)

    # health ------------------------------------------------------------

    def live(self) -> bool:
        """Whether the server can answer at all. Raises CoreError(UNAVAILABLE) while it exits."""
        self._refuse_exiting()
        return True

    def ready(self) -> bool:
        """Whether requests can be served; with strict readiness, by every model.

        Raises CoreError(UNAVAILABLE) while the server exits.
        """
        self._refuse_exiting()
        if self.state is not State.READY:
            return False
        return not self.options.strict_readiness or self._manager.all_ready()

    def model_ready(self, name: str, version: int = NEWEST) -> bool:
        """Whether that version, or the newest, can serve. Raises CoreError for an unknown one."""
        return self._manager.resolve(name, version).chain.ready

    async def check(self) -> bool:
        """As `ready`, after every model's instances have been asked."""
        if not self.ready():
            return False
        return not self.options.strict_readiness or await self._manager.check_all()

    async def check_model(self, name: str, version: int = NEWEST) -> bool:
        """As `model_ready`, after the instances have been asked."""
        return await self._manager.resolve(name, version).chain.check()

    def _refuse_exiting(self) -> None:
        if self.state is State.EXITING:
            raise unavailable("Server exiting")

    # what there is --------------------------------------------------------

    def metadata(self) -> dict[str, Any]:
        return {"name": self.name, "version": self.version, "extensions": list(self.extensions)}

    def model_metadata(self, name: str, version: int = NEWEST) -> dict[str, Any]:
        """Inputs, outputs and ready versions; shapes with -1 first where the model batches."""
        found = self._manager.resolve(name, version)
        config, signature = found.config, found.signature
        versions = [found.version] if version != NEWEST else self._manager.ready_versions(found.key)
        batch = [-1] if signature.max_batch_size else []
        return {
            "name": found.name,
            "versions": [str(number) for number in versions],
            "platform": config.platform or config.backend,
            "inputs": [
                {"name": spec.name, "datatype": spec.dtype.name, "shape": [*batch, *spec.dims]}
                for spec in signature.inputs.values()
            ],
            "outputs": [
                {"name": spec.name, "datatype": spec.dtype.name, "shape": [*batch, *spec.dims]}
                for spec in signature.outputs.values()
            ],
        }

    def model_config(self, name: str, version: int = NEWEST) -> ModelConfig:
        """The completed configuration; the caller must not change it."""
        return self._manager.resolve(name, version).config

    def model_config_json(self, name: str, version: int = NEWEST) -> dict[str, Any]:
        """The same as the JSON object that Triton shows."""
        return configuration.to_json(self.model_config(name, version))

    def signature(self, name: str, version: int = NEWEST) -> Signature:
        """Inputs and outputs, for parsing a request. Raises CoreError for an unknown model."""
        return self._manager.endpoints.find(name, version).signature

    def takes_device(self, name: str, version: int = NEWEST) -> bool:
        """Whether a model takes inputs that are on a device as they are. Raises as `signature`."""
        return self._manager.resolve(name, version).chain.takes_device

    def content(self, name: str, version: int = NEWEST) -> str:
        """What tells a version from others that had its name and number. Raises as `signature`."""
        return self._manager.resolve(name, version).content

    def versions(self) -> Iterable[ModelVersion]:
        """Every version that is loaded or was, by name and version."""
        return self._manager.versions()

    def table(self) -> list[tuple[str, str, str]]:
        """(model, version, status) of every model that was tried, for the tables at the start."""
        return self._manager.table()

    def statistics(self, name: str = "", version: int = NEWEST) -> list[dict[str, Any]]:
        """An entry for each ready version: of one model, or of all without a name.

        Raises CoreError(INVALID) for what is not there: statistics answer 400, not 404, in Triton; and
        CoreError(UNAVAILABLE) for a model that is being loaded.
        """
        found = [
            each
            for each in self._manager.versions()
            if each.state == "READY"
            and (not name or name in (each.name, each.key))
            and version in (NEWEST, each.version)
        ]
        if name and not found:
            if any(
                name in (each.name, each.key) and each.state == "READY" for each in self.versions()
            ):
                raise invalid(f"requested model version is not available for model '{name}'")
            if text := self._manager.progress(name):
                raise Loading(text)
            raise invalid(f"requested model '{name}' is not available")
        return [
            {
                **named_entry(each.name, each.namespace),
                "version": str(each.version),
                **each.chain.statistics.as_dict(),
                "memory_usage": each.memory_usage(),
            }
            for each in found
        ]

    def metrics(self) -> list[Family]:
        """Every metric family with its samples of now."""
        return collect(self)

    def results(self) -> list[tuple[str | None, str, dict[tuple[str, str], int]]]:
        """Of each model its namespace, its name, and how its loads and unloads ended:
        ("loads" or "unloads", "success" or "failure") → count."""
        return self._manager.results()

    # the log: one for the process ------------------------------------------

    def log_settings(self) -> dict[str, Any]:
        """What is logged and how, by the names of the logging extension."""
        return log.current()

    def change_log_settings(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Change some of them, None for no change; returns all. Raises CoreError and changes nothing."""
        self._refuse_remote(changes)
        return log.change(changes)

    # traces ----------------------------------------------------------------

    def trace_settings(self, model: str = "") -> dict[str, Any]:
        """What is traced, of the server or of one model, by the names of the trace extension.

        trace_level is a list, all others are text. Raises CoreError(INVALID) for an unknown model.
        """
        self._refuse_untraced(model)
        return self.tracing.settings(model)

    def change_trace_settings(self, changes: dict[str, Any], model: str = "") -> dict[str, Any]:
        """Change some of them, None clears one; returns all. Raises CoreError and changes nothing."""
        self._refuse_remote(changes)
        self._refuse_untraced(model)
        return self.tracing.change(changes, model)

    def _refuse_untraced(self, model: str) -> None:
        """Raises CoreError(INVALID) for a model that has no version to trace; "" is the server."""
        if model and not any(
            each.name == model and each.state == "READY" for each in self.versions()
        ):
            raise invalid(f"Request for unknown model : {model}")

    def _refuse_remote(self, changes: Mapping[str, Any]) -> None:
        """Raises CoreError(UNSUPPORTED) for changes that --allow-remote-settings keeps from clients."""
        if changes and not self.options.allow_remote_settings:
            raise unsupported(
                "changing settings is turned off; start the server with --allow-remote-settings=true"
            )

    # model repository -------------------------------------------------------

    async def look(self) -> None:
        """Let `index` know which models remote repositories hold now. Raises CoreError when one is away."""
        await self._manager.look()

    def index(self, ready_only: bool = False) -> list[dict[str, Any]]:
        """The models of the repositories with version, state and reason."""
        return self._manager.index(ready_only)

    async def load(self, name: str, parameters: dict[str, Any] | None = None) -> None:
        """Load or reload a model, for another model. Returns when it is ready.

        parameters   `config` (str) and `file:<path>` (bytes) override the repository
        Raises CoreError when it failed.
        """
        await self.management.load_by_model(name, parameters or {}, asked_in_a_load())

    async def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Unload a model, for another model. Returns when no version is ready; those in flight finish
        behind."""
        await self.management.unload_by_model(name, unload_dependents, asked_in_a_load())

    async def load_here(self, name: str, parameters: Mapping[str, Any]) -> None:
        """The same as `load`, in this process."""
        await self._manager.load(name, parameters)

    async def unload_here(self, name: str, unload_dependents: bool) -> None:
        """The same as `unload`, in this process."""
        await self._manager.unload(name, unload_dependents)

    async def bring(self, name: str) -> None:
        """The same as `load_here` in every control mode: for who keeps a repository of his own."""
        await self._manager.bring(name)

    async def take_out(self, name: str) -> None:
        """The same as `unload_here` in every control mode."""
        await self._manager.take_out(name)

    async def join_here(self, place: Place) -> None:
        """Load a model that lies elsewhere, in this process: ModelManager.join."""
        await self._manager.join(place)

    async def leave_here(self, name: str) -> None:
        """Unload one that has joined, and what it is composed of, in this process: ModelManager.leave."""
        await self._manager.leave(name)

    async def emptied(self, name: str) -> None:
        """Wait for the last requests of what has left under a name, in this process."""
        await self._manager.joining.emptied(name)

    def is_empty(self, name: str) -> bool:
        """Whether there are none."""
        return self._manager.joining.is_empty(name)

    def places(self) -> list[Place]:
        """Where the models lie that have joined."""
        return list(self._manager.joining.places.values())

    async def poll(self) -> None:
        """Look at the repositories now, in mode poll, in this process."""
        await self._manager.poll()

    def knows(self, name: str) -> bool:
        """Whether somebody has asked for a model in this process."""
        return self._manager.knows(name)

    # inference -----------------------------------------------------------------

    def infer(self, request: InferenceRequest) -> Reply:
        """Hand a request to its model. Raises CoreError for what is refused at once.

        Later errors come through the Reply.
        """
        return self.ask(self.endpoint(request.model_name, request.model_version), request)

    @property
    def endpoints(self) -> EndpointTable:
        """The ways to the versions that serve, for who asks without traces."""
        return self._manager.endpoints

    def endpoint(self, name: str, version: int = NEWEST) -> ModelEndpoint:
        """The way to a model version: what `ask` takes, with the signature. Raises as `signature`."""
        return self._manager.endpoints.find(name, version)

    def ask(self, endpoint: ModelEndpoint, request: InferenceRequest) -> Reply:
        """`infer` for who has found the endpoint of the request's model, in this turn of the loop."""
        if self.tracing.on:
            return self.tracing.infer(
                request, endpoint.signature.name, endpoint.signature.version, endpoint
            )
        return endpoint.submit(request)

    def infer_step(self, request: InferenceRequest) -> Reply:
        """The same for a request that another one makes: it is traced if that one is.

        request.trace is the trace of the other request.
        """
        endpoint = self.endpoint(request.model_name, request.model_version)
        if request.trace is not None:
            return self.tracing.step(
                request, endpoint.signature.name, endpoint.signature.version, endpoint
            )
        return endpoint.submit(request)
