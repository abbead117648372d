"""ModelManager: the control modes. What should be loaded, and when somebody looks again.

Server ─► [ModelManager] ─► Roster ─► ManagedModel ─► ModelVersion.  Looking at files and loading leave
the loop, decisions do not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from core.backend import Backend
from core.errors import CoreError, Kind, internal, not_found, unavailable, unsupported
from core.lifecycle import policy, report
from core.lifecycle.dependencies import needed_by
from core.lifecycle.host import Agree, Host
from core.lifecycle.managed import ManagedModel
from core.lifecycle.roster import Failures, Roster
from core.lifecycle.shutdown import Deadline, shut_down
from core.lifecycle.version import ModelVersion
from core.options import Options
from core.pipeline.doors import Doors
from core.pipeline.intake import Door
from core.repository import Catalog, ModelSource, Override, Repository, open_repositories
from core.repository.names import checked_name
from core.request import NEWEST

if TYPE_CHECKING:
    from core.server import Server

logger = logging.getLogger("core")

T = TypeVar("T")


class ModelManager:
    """All models of the server. Loop thread only.

    gpus           ids of the GPUs that instances may be placed on
    find_backend   name → Backend, may block; None for those that are installed
    doors          of the READY versions: what requests need
    repositories   more of them than the options name
    agree          as Host has it: with several workers, what the others say about a load
    sleep          waits that many seconds: between polls, and at the end for what is in flight
    clock          seconds that only grow
    """

    def __init__(
        self,
        options: Options,
        loop: asyncio.AbstractEventLoop,
        server: Server,
        *,
        gpus: Sequence[int] = (),
        find_backend: Callable[[str], Backend] | None = None,
        agree: Agree | None = None,
        repositories: Sequence[Repository] = (),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ):
        if options.model_namespacing:
            raise unsupported(
                "--model-namespacing is not supported: a model may be in one repository only"
            )
        self._options = options
        self._mode = options.model_control_mode
        self._loop = loop
        self._sleep = sleep
        self._clock = clock
        self._catalog = Catalog(
            [
                *open_repositories(options.model_repository, options.cloud_cache_directory),
                *repositories,
            ],
            config_name=options.model_config_name,
            needs_config=options.disable_auto_complete_config,
        )
        self.doors = Doors(self._door_of)
        self._host = Host(options, loop, server, self.doors, gpus, find_backend, agree)
        self._roster = Roster(self._host)
        self._models = self._roster.models
        self._operations: set[asyncio.Task[Any]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._stopping = False

    # start and stop ------------------------------------------------------------

    async def start(self) -> None:
        """Load what the control mode says, and poll from then on in mode poll.

        One of several workers does not: all of them look when the supervisor says so.

        Raises CoreError if a repository cannot be read, or a model failed and options.exit_on_error.
        """
        await self._host.run(self._catalog.check)
        failures = await self._operate(self._start())
        if failures and self._options.exit_on_error:
            raise internal("failed to load all models")
        if self._mode == "poll" and self._options.workers == 1 and not self._stopping:
            self._poller = self._loop.create_task(self._poll_forever())

    async def _start(self) -> Failures:
        if self._mode != "explicit":
            return await self._roster.bring(await self._host.run(self._catalog.survey_all))
        named = set(self._options.load_model)
        if "*" in named:
            named = named - {"*"} | set(await self._host.run(self._catalog.names))
        found = await self._host.run(self._catalog.survey_names, named)
        return await self._roster.bring(found, by_name=named)

    async def stop(self, timeout_s: float) -> int:
        """Finish what is in flight, unload everything, end all threads.

        Returns the number of model versions (and loads) that were not gone after `timeout_s`: what
        they do goes on, on threads that are left behind. New loads are refused.
        """
        self._stopping = True
        if self._poller is not None:
            self._poller.cancel()
        self._catalog.give_up()
        deadline = Deadline(timeout_s, self._sleep, self._clock)
        try:
            return await shut_down(self._roster, self._operations, self._host, deadline)
        finally:
            if self._catalog.remote:  # a thread of its own: those of the host have ended
                with ThreadPoolExecutor(1) as thread:
                    await self._loop.run_in_executor(thread, self._catalog.close)

    # what there is -------------------------------------------------------------

    def resolve(self, name: str, version: int = NEWEST) -> ModelVersion:
        """The READY version of that number, or the newest READY one.

        Raises CoreError(NOT_FOUND) for what is unknown, CoreError(UNAVAILABLE) for a version that
        is known and not ready.
        """
        model = self._models.get(name)
        if model is None:
            raise not_found(f"Request for unknown model: '{name}' is not found")
        if version == NEWEST:
            if model.newest is None:
                raise not_found(f"Request for unknown model: '{name}' has no available versions")
            return model.newest
        found = model.versions.get(version)
        if found is None:
            raise not_found(f"Request for unknown model: '{name}' version {version} is not found")
        if found.state != "READY":
            raise unavailable(
                f"Request for unknown model: '{name}' version {version} is not at ready state"
            )
        return found

    def results(self) -> dict[str, dict[tuple[str, str], int]]:
        """Of each model, how often versions were loaded and unloaded, with which result."""
        return {name: model.results for name, model in self._models.items()}

    def _door_of(self, name: str, version: int) -> Door:
        """For what `doors` does not have: raises what resolve raises."""
        return self.resolve(name, version).chain.handler

    def knows(self, name: str) -> bool:
        """Whether somebody has asked for the model, here or by a wish of an ensemble."""
        return name in self._models

    def ready_versions(self, name: str) -> list[int]:
        """Numbers of the READY versions of a model, ascending."""
        model = self._models.get(name)
        versions = model.versions if model is not None else {}
        return sorted(number for number, each in versions.items() if each.state == "READY")

    def versions(self) -> Iterable[ModelVersion]:
        """Every version that the index shows, by name and number."""
        for _, model in sorted(self._models.items()):
            yield from (model.versions[number] for number in sorted(model.versions))

    def all_ready(self) -> bool:
        """Whether every wanted model serves with every version that it should have."""
        return report.all_ready(self._models.values())

    async def check_all(self) -> bool:
        """Whether each of these can serve, after its instances have been asked."""
        chains = [each.chain for each in self.versions() if each.state == "READY"]
        return all(await asyncio.gather(*(chain.check() for chain in chains)))

    async def look(self) -> None:
        """Let `index` know what remote repositories hold now. Raises CoreError when one cannot be asked."""
        if self._catalog.remote:
            try:
                await self._host.run(self._catalog.look)
            except OSError as error:
                raise internal(f"failed to read the model repository: {error}") from error

    def index(self, ready_only: bool) -> list[dict[str, Any]]:
        """The models of the repositories, and those that load requests brought, as entries of v2.

        Of remote repositories those that the last look saw.
        """
        try:
            holders = self._catalog.names()
        except OSError as error:
            raise internal(f"failed to read the model repository: {error}") from error
        return report.index(holders, self._models, ready_only)

    def table(self) -> list[tuple[str, str, str]]:
        """(model, version, status) of every model that was tried, for the table at the start."""
        return report.table(model for _, model in sorted(self._models.items()))

    # control -------------------------------------------------------------------

    async def load(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Load a model and what it is composed of, or reload what has changed.

        parameters   `config` (JSON text) and `file:<path>` (bytes) go before the repository
        Returns when the model is ready. The operation goes on if the caller is cancelled.
        Raises CoreError when the request is wrong or the model cannot load; what served serves on.
        """
        self._refuse_uncontrolled()
        await self._operate(self._load(checked_name(name), Override.of(parameters)))

    async def bring(self, name: str) -> None:
        """The same as a plain `load`, in every control mode: the server itself wants the model."""
        self._refuse_stopping()
        await self._operate(self._load(checked_name(name), None))

    async def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Unload a model, and the ensembles that need it. A name that nobody knows is no error.

        unload_dependents   the models that an ensemble is composed of too, but for those that were
                            loaded by name or that another ensemble needs
        Returns when no version is READY; the last requests finish behind.
        """
        self._refuse_uncontrolled()
        if name in self._models:
            await self._operate(self._unload(name, unload_dependents))

    async def take_out(self, name: str) -> None:
        """The same as a plain `unload`, in every control mode; then nothing is known of the model."""
        self._refuse_stopping()
        if name in self._models:
            await self._operate(self._unload(name, False))
            self._begin(self._forget_after(self._models.get(name)))

    def _refuse_uncontrolled(self) -> None:
        if self._mode != "explicit":
            raise unavailable("explicit model load / unload is not allowed if polling is enabled")
        self._refuse_stopping()

    def _refuse_stopping(self) -> None:
        if self._stopping:
            raise unavailable("Server exiting")

    async def _load(self, name: str, override: Override | None) -> None:
        source = await self._survey(name, override)
        source.directory.hold()
        try:
            found = await self._host.run(self._catalog.survey_names, source.steps)
            failures = await self._roster.bring({**found, name: source}, by_name={name})
            await self._wake([name, *found])
        finally:
            await self._host.let_go(source.directory)
            await self._forget()
        if name in failures:
            # An ensemble that fails because a step did says why the step did.
            steps = needed_by(name, self._roster.steps())
            lines = [failures[each] for each in (name, *steps) if each in failures]
            raise CoreError(lines[0].kind, "".join(line.message for line in lines))

    async def _survey(self, name: str, override: Override | None) -> ModelSource:
        try:
            return await self._host.run(self._catalog.survey, name, override)
        except CoreError as error:
            if error.kind is not Kind.INTERNAL:  # the request is wrong, not the repository
                raise
            await self._roster.bring({name: error})
            await self._forget()
            raise internal(
                f"failed to load '{name}', failed to poll from model repository: {error.message}"
            ) from error

    async def _wake(self, names: Collection[str]) -> None:
        """Bring back the ensembles that went out of service with one of these models."""
        if asleep := set(self._roster.asleep(names)) - set(names):
            await self._roster.bring(await self._host.run(self._catalog.survey_names, asleep))

    async def _unload(self, name: str, with_steps: bool) -> None:
        await self._roster.take_out(name, with_steps)
        await self._forget()

    async def _forget(self) -> None:
        try:
            names = await self._host.run(self._catalog.names)
        except OSError:  # what the repositories hold is not known now: the next operation will see
            return
        self._roster.forget({*names, *self._options.load_model})

    async def _forget_after(self, model: ManagedModel | None) -> None:
        """Forget a model when its last requests have finished."""
        if model is not None and model.leaving:
            await asyncio.wait(model.leaving)
            await self._forget()

    # polling -------------------------------------------------------------------

    async def _poll_forever(self) -> None:
        while True:
            await self._sleep(self._options.repository_poll_secs)
            await self.poll()

    async def poll(self) -> None:
        """Look once, in mode poll. What goes wrong is in the log."""
        try:
            if not self._stopping:
                await self._operate(self._poll())
        except OSError as error:
            logger.error("polling the model repositories failed: %s", error)
        except Exception:
            logger.exception("polling the model repositories failed")

    async def _poll(self) -> None:
        """Look once: load what is new or changed, unload what is gone."""
        found = await self._host.run(self._catalog.survey_all)
        for name in [n for n, model in self._models.items() if model.wanted and n not in found]:
            await self._roster.take_out(name)
        changed = {name: each for name, each in found.items() if self._changed(name, each)}
        await self._roster.bring(changed)
        await self._wake(changed)

    def _changed(self, name: str, found: ModelSource | CoreError) -> bool:
        """Whether it is not what was tried last, with or without success."""
        last = self._models[name].attempt if name in self._models else None
        if isinstance(last, ModelSource) and isinstance(found, ModelSource):
            return not policy.unchanged(last, found)
        if isinstance(last, CoreError) and isinstance(found, CoreError):
            return last.message != found.message
        return True

    # operations ------------------------------------------------------------------

    async def _operate(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run an operation to its end, also when the client who asked for it goes away."""
        return await asyncio.shield(self._begin(operation))

    def _begin(self, operation: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = self._loop.create_task(operation)
        self._operations.add(task)
        task.add_done_callback(self._operations.discard)
        return task
