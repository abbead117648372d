"""InferenceServer: the parts of one server in one process.

frontend ─► [InferenceServer] ─► models (for requests), control (for operators).  It knows no protocol: names,
versions and parameters are Python values, results are dicts in the shape of the v2 protocol's JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from core.backend import Backend
from core.caches import open_cache
from core.control import Control, Exchange, Models
from core.control.health import HealthControl
from core.control.metrics.collect import MetricCollector
from core.control.metrics.watch import Watch
from core.control.repository import RepositoryControl
from core.control.settings import SettingsControl, open_exporter
from core.devices.visible import gpus
from core.lifecycle import ModelManager
from core.options import Options
from core.pipeline.instances.rate_limiter import RateLimiter
from core.repository import Repository
from core.system.account import MemoryAccount
from core.system.heap import Trimmer
from core.telemetry.tracing import Tracer
from core.version import __version__

# fmt: off
EXTENSIONS = (
    "classification", "sequence", "model_repository", "model_repository(unload_dependents)",
    "schedule_policy", "model_configuration", "system_shared_memory", "cuda_shared_memory",
    "binary_tensor_data", "parameters", "statistics", "trace", "logging",
)
# fmt: on
WITHOUT_GPUS = tuple(each for each in EXTENSIONS if each != "cuda_shared_memory")


T = TypeVar("T")


class InferenceServer:
    """One server. Not thread-safe: call from the event loop only.

    find_backend         name → Backend; may block; None for installed backends and --backend-directory
    exchange             connection to the other processes of the server; None if this is the only one
    repositories         opened repositories in addition to those of the options
    models               operations of requests: signatures, inference
    control              control operations: load, unload, settings, statistics, for all processes
    manager              loads and unloads the models of this process
    tracing              traces requests; frontends check `tracing.on`
    watch                measures machine and process; the frontend that serves metrics starts it
    """

    def __init__(
        self,
        options: Options,
        *,
        find_backend: Callable[[str], Backend] | None = None,
        exchange: Exchange | None = None,
        repositories: Sequence[Repository] = (),
    ):
        self.options = options
        self.name = options.id
        self.version = __version__
        self.extensions = EXTENSIONS if gpus() else WITHOUT_GPUS
        self.cache = open_cache(options.cache_config)
        self.account = MemoryAccount.of(options)
        self.account.on_give = Trimmer().freed
        self._shared: dict[Callable[[InferenceServer], Any], Any] = {}
        self._reload: list[Callable[[], object]] = []
        self._exchange = exchange
        self.tracing = Tracer(
            options,
            suffix=f".worker-{exchange.number}" if exchange else "",
            exporter=open_exporter(options),
        )
        self.watch = Watch(options, exchange.number if exchange else None)
        self.manager = ModelManager(
            options,
            asyncio.get_running_loop(),
            cache=self.cache,
            limiter=RateLimiter(options.rate_limit_resource)
            if options.rate_limit == "execution_count"
            else None,
            gpus=gpus(),
            find_backend=find_backend,
            agree=exchange.agree if exchange else None,
            repositories=repositories,
        )
        repository = RepositoryControl(self.manager)
        self.models = Models(self.manager, self.tracing, repository)
        self.manager.provide(self.models)
        metrics = MetricCollector(options, self.manager, self.watch, self.account, self.cache)
        self._health = HealthControl(options, self.manager, self.models, metrics.collect)
        self.control = Control(
            self._health,
            repository,
            SettingsControl(self.tracing, options.allow_remote_settings, self.manager.serves),
            exchange,
        )

    async def start(self) -> None:
        """Load the models of the control mode; poll in mode poll, except as a worker. Frontends may be open.

        Raises CoreError if a repository cannot be read, or a model fails and options.exit_on_error is set.
        """
        await self.manager.start()
        self._health.loaded = True

    async def stop(self, timeout_s: float) -> int:
        """Finish the running requests, unload all models, then close cache, traces and shared objects.

        Returns the number of model versions and loads that remain after `timeout_s`; 0 if all have ended.
        """
        self._health.exiting = True
        loop = asyncio.get_running_loop()
        end_s = loop.time() + timeout_s
        try:
            return await self.manager.stop(timeout_s)
        finally:
            self.watch.stop()
            if self.cache is not None:
                await self.cache.close()
            await self.tracing.close(end_s - loop.time())
            while self._shared:
                await self._shared.popitem()[1].close()

    def shared(self, factory: Callable[[InferenceServer], T]) -> T:
        """Return the object of `factory(server)`: one per server and factory, created by the first call.

        Frontends use it to share objects. The server awaits the object's `close()` after the last model is
        unloaded. Raises what the factory raises.
        """
        if factory not in self._shared:
            self._shared[factory] = factory(self)
        found: T = self._shared[factory]
        return found

    def on_reload(self, listener: Callable[[], object]) -> None:
        """Register a listener, called when the server reads its files again (SIGHUP)."""
        self._reload.append(listener)

    def reload(self) -> None:
        """Call every listener of `on_reload`."""
        for listener in self._reload:
            listener()

    def shared_table(self, name: str) -> Any:
        """Return the table `name` that all processes share; None in an only process. KeyError if unknown."""
        return None if self._exchange is None else self._exchange.table(name)

    def metadata(self) -> dict[str, Any]:
        """Return name, version and extensions."""
        return {"name": self.name, "version": self.version, "extensions": list(self.extensions)}
