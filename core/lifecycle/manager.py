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
from typing import Any, TypeVar

from core.backend import Backend
from core.caches import Cache
from core.errors import CoreError, Kind, Loading, internal, invalid, not_found, unavailable
from core.lifecycle import report
from core.lifecycle.dependencies import needed_by
from core.lifecycle.host import Agree, Host, ServedModels
from core.lifecycle.joining import Joining
from core.lifecycle.look import REST_S, Changes, changes
from core.lifecycle.managed import ManagedModel
from core.lifecycle.resolving import resolved
from core.lifecycle.roster import Failures, Roster
from core.lifecycle.shutdown import Deadline, shut_down
from core.lifecycle.version import ModelVersion
from core.options import Options
from core.pipeline.endpoint import ModelEndpoint
from core.pipeline.endpoint_table import EndpointTable
from core.pipeline.instances.rate_limiter import RateLimiter
from core.repository import (
    Catalog,
    ModelLocation,
    ModelSource,
    Override,
    Repository,
    open_repositories,
)
from core.repository.names import checked_name, name_of, namespace_of
from core.request import NEWEST

logger = logging.getLogger("core")

T = TypeVar("T")


class ModelManager:
    """All models of the server. Loop thread only.

    cache          of responses, None for none
    limiter        of instances that share resources, None for none
    gpus           ids of the GPUs that instances may be placed on
    find_backend   name → Backend, may block; None for those that are installed
    endpoints          of the READY versions: what requests need
    repositories   more of them than the options name
    agree          as Host has it: with several workers, what the others say about a load
    joining        models that lie elsewhere
    sleep          waits that many seconds: between polls, and at the end for what is in flight
    clock          seconds that only grow
    """

    def __init__(
        self,
        options: Options,
        loop: asyncio.AbstractEventLoop,
        *,
        cache: Cache | None = None,
        limiter: RateLimiter | None = None,
        gpus: Sequence[int] = (),
        find_backend: Callable[[str], Backend] | None = None,
        agree: Agree | None = None,
        repositories: Sequence[Repository] = (),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._options = options
        self._mode = options.model_control_mode
        self._loop = loop
        self._sleep = sleep
        self._clock = clock
        self._catalog = Catalog(
            [*open_repositories(options), *repositories],
            config_name=options.model_config_name,
            needs_config=options.disable_auto_complete_config,
            namespacing=options.model_namespacing,
        )
        self.endpoints = EndpointTable(self._endpoint_of)
        self._host = Host(
            options,
            loop,
            self.endpoints,
            cache=cache,
            limiter=limiter,
            gpus=gpus,
            find_backend=find_backend,
            agree=agree,
        )
        self._roster = Roster(self._host)
        self._models = self._roster.models
        self.joining = Joining(
            self._catalog,
            self._roster,
            self._host,
            self._load,
            self._unload,
            self._forget,
            self._begin,
        )
        self._operations: set[asyncio.Task[Any]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._stopping = False
        self._looking = False  # at the repositories, for the first time

    def provide(self, models: ServedModels) -> None:
        """Give this to the models that call other models. Before the first load."""
        self._host.models = models

    # start and stop ------------------------------------------------------------

    async def start(self) -> None:
        """Load what the control mode says, and poll from then on in mode poll.

        One of several workers does not: all of them look when the supervisor says so.

        Raises CoreError if a repository cannot be read, or a model failed and options.exit_on_error.
        """
        self._looking = True
        try:
            await self._host.run(self._catalog.check)
            failures = await self._operate(self._start())
        finally:
            self._looking = False
        if failures and self._options.exit_on_error:
            raise internal("failed to load all models")
        if self._mode == "poll" and self._options.workers == 1 and not self._stopping:
            self._poller = self._loop.create_task(self._poll_forever())

    async def _start(self) -> Failures:
        if self._mode != "explicit":
            everything = await self._host.run(self._catalog.survey_all)
            self._looking = False
            return await self._roster.bring(everything)
        named: set[str] = set()
        for name in self._options.load_model:
            if name == "*":
                named.update(await self._host.run(self._catalog.names))
            else:
                named.update(await self._host.run(self._catalog.keys_of, name))
        found = await self._host.run(self._catalog.survey_names, named)
        self._looking = False
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

        Raises CoreError(NOT_FOUND) for what is unknown, CoreError(UNAVAILABLE) for what is being loaded
        and for a version that is known and not ready, CoreError(INVALID) for a name that several models
        have.
        """
        model = self._models.get(name)
        if model is None and self._options.model_namespacing:
            model = self._only(name)
        if model is None:
            if self._looking:
                raise Loading(
                    "the server reads its model repositories and does not know yet whether they hold "
                    f"model '{name}'"
                )
            raise not_found(f"Request for unknown model: '{name}' is not found")
        return resolved(model, name, version)

    def _only(self, name: str) -> ManagedModel | None:
        """With namespaces: the one model of that name, None if there is none."""
        found = [key for key in self._roster.keys_of(name) if self._models[key].counts]
        if len(found) > 1:
            raise invalid(
                f"There are {len(found)} identifiers of model '{name}' in global map, model namespace "
                "must be provided to resolve ambiguity."
            )
        return self._models[found[0]] if found else None

    def results(self) -> list[tuple[str | None, str, dict[tuple[str, str], int]]]:
        """Of each model its namespace, its name, and how often versions were loaded and unloaded, with which
        result: ("loads" or "unloads", "success" or "failure") → count."""
        return [
            (namespace_of(key), name_of(key), model.results) for key, model in self._models.items()
        ]

    def _endpoint_of(self, name: str, version: int) -> ModelEndpoint:
        """For what `endpoints` does not have: raises what resolve raises."""
        return self.resolve(name, version).chain.handler

    def knows(self, name: str) -> bool:
        """Whether somebody has asked for the model, here or by a wish of an ensemble."""
        return bool(self._roster.keys_of(name))

    def raise_if_loading(self, name: str) -> None:
        """Raise Loading, which says how far it is, if a model is being loaded. `name` may be its key."""
        for key in self._roster.keys_of(name):
            if text := self._models[key].progress():
                raise Loading(text)

    def serves(self, name: str) -> bool:
        """Return whether any version of a model serves."""
        return any(each.name == name and each.state == "READY" for each in self.versions())

    def ready_versions(self, name: str) -> list[int]:
        """Numbers of the READY versions of a model, ascending. `name` may be its key."""
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

    def index(self, ready_only: bool = False) -> list[dict[str, Any]]:
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
        override = Override.of(parameters, self._options.model_override_max_byte_size)
        await self._operate(self._load_in_turn(checked_name(name), override))

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
        if keys := self._roster.keys_of(name):
            await self._operate(self._unload(keys, unload_dependents))

    async def take_out(self, name: str) -> None:
        """The same as a plain `unload`, in every control mode; then nothing is known of the model."""
        self._refuse_stopping()
        if keys := self._roster.keys_of(name):
            await self._operate(self._unload(keys, False))
            for key in keys:
                self._begin(self._forget_after(self._models.get(key)))

    async def join(self, place: ModelLocation) -> None:
        """Load a model that lies elsewhere, and look there from now on: a model that it is composed of may
        lie beside it.

        Raises CoreError(ALREADY_EXISTS) for a name or a place that is there already, and what `load`
        raises; then nothing has joined.
        """
        self._refuse_uncontrolled()
        if checked_name(place.name) != place.name:
            raise invalid(f"invalid model name '{place.name}', there are blanks around it")
        await self._operate(self.joining.join(place))

    async def leave(self, name: str) -> None:
        """Unload a model that has joined, with what it is composed of, and look there no more.

        Returns when no version is READY; `joining.emptied` tells when the last requests have finished. A
        name under which none has joined is no error.
        """
        self._refuse_uncontrolled()
        await self._operate(self.joining.leave(name))

    def _refuse_uncontrolled(self) -> None:
        if self._mode != "explicit":
            raise unavailable("explicit model load / unload is not allowed if polling is enabled")
        self._refuse_stopping()

    def _refuse_stopping(self) -> None:
        if self._stopping:
            raise unavailable("Server exiting")

    async def _load_in_turn(self, name: str, override: Override | None) -> None:
        async with self.joining.turn(name):
            await self._load(name, override)

    async def _load(self, name: str, override: Override | None) -> None:
        keys = await self._host.run(self._catalog.keys_of, name, override)
        sources: dict[str, ModelSource] = {}
        refused: dict[str, CoreError] = {}
        try:
            for key in keys:
                try:
                    sources[key] = await self._host.run(self._catalog.survey, key, override)
                    sources[key].directory.hold()
                except CoreError as error:
                    if error.kind is not Kind.INTERNAL:  # the request is wrong, not the repository
                        raise
                    refused[key] = error
            composing = [step for source in sources.values() for step in source.steps]
            found = await self._host.run(self._catalog.survey_names, composing)
            failures = await self._roster.bring(
                {**found, **sources, **refused}, by_name=set(sources)
            )
            await self._wake([*sources, *found])
        finally:
            for source in sources.values():
                await self._host.let_go(source.directory)
            await self._forget()
        for refusal in refused.values():
            raise internal(
                f"failed to load '{name}', failed to poll from model repository: {refusal.message}"
            ) from refusal
        if any(key in failures for key in keys):
            # An ensemble that fails because a step did says why the step did.
            steps = [step for key in keys for step in needed_by(key, self._roster.steps())]
            lines = [failures[each] for each in dict.fromkeys([*keys, *steps]) if each in failures]
            raise CoreError(lines[0].kind, "".join(line.message for line in lines))

    async def _wake(self, names: Collection[str]) -> None:
        """Bring back the ensembles that went out of service with one of these models."""
        if asleep := set(self._roster.asleep(names)) - set(names):
            await self._roster.bring(await self._host.run(self._catalog.survey_names, asleep))

    async def _unload(self, keys: Sequence[str], with_steps: bool) -> None:
        for key in keys:
            await self._roster.take_out(key, with_steps)
        await self._forget()

    async def _forget(self, keep: Iterable[str] = ()) -> None:
        try:
            names = await self._host.run(self._catalog.names)
        except OSError:  # what the repositories hold is not known now: the next operation will see
            return
        self._roster.forget({*names, *self._options.load_model, *keep})

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
        """Look, in mode poll, and once more after a while when something has changed.

        What goes wrong is in the log.
        """
        try:
            seen = None if self._stopping else await self._operate(self._look())
            if seen:
                # Not a part of the operation: the end need not wait for it.
                await self._sleep(min(REST_S, self._options.repository_poll_secs))
                if not self._stopping:
                    await self._operate(self._follow(seen))
        except OSError as error:
            logger.error("polling the model repositories failed: %s", error)
        except Exception:
            logger.exception("polling the model repositories failed")

    async def _look(self) -> Changes:
        found = await self._host.run(self._catalog.survey_all)
        return changes(found, await self._host.run(self._catalog.names), self._models)

    async def _follow(self, before: Changes) -> None:
        """Load what is new or changed, unload what is gone, as far as it is at rest."""
        found = (await self._look()).at_rest(before)
        for name in found.gone:
            if name in self._models:  # it may have gone with another one
                await self._roster.take_out(name)
        await self._roster.bring(found.changed)
        await self._wake(found.changed)
        await self._forget(keep=[name for name, model in self._models.items() if model.wanted])

    # operations ------------------------------------------------------------------

    async def _operate(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run an operation to its end, also when the client who asked for it goes away."""
        return await asyncio.shield(self._begin(operation))

    def _begin(self, operation: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = self._loop.create_task(operation)
        self._operations.add(task)
        task.add_done_callback(self._operations.discard)
        return task
