"""ModelManager: loads and unloads models according to the control mode.

Server ─► [ModelManager] ─► ModelRegistry ─► ManagedModel ─► ModelVersion.  Reading files and loading run
on worker threads; decisions are made on the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from core.backend import Backend
from core.caches import Cache
from core.errors import CoreError, Kind, internal, invalid, unavailable
from core.lifecycle.dependencies import needed_by
from core.lifecycle.host import Agree, Host
from core.lifecycle.joining import Joining
from core.lifecycle.managed import ManagedModel
from core.lifecycle.model_index import ModelIndex
from core.lifecycle.model_registry import Failures
from core.lifecycle.operations import Operations
from core.lifecycle.polling import Changes, Poller, changes
from core.lifecycle.shutdown import Deadline, shut_down
from core.options import Options
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
from core.repository.catalog import Survey
from core.repository.names import checked_name

logger = logging.getLogger("core")

T = TypeVar("T")


class ModelManager(ModelIndex):
    """The control of the server's models. Loop thread. See Host for the parameters that are not listed.

    repositories   repositories besides those of the options
    sleep          waits a number of seconds: between polls, and at shutdown for requests in flight
    clock          monotonic, in seconds
    endpoints      of the READY versions, for requests
    joining        adds and removes models that lie in other folders
    place_on       place_on(gpus): a plugin restricts the GPUs of instances, in core_server_starting
    overlay_by     overlay_by(overlay, refresh): a plugin changes the configurations that versions load by
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
        self._sleep = sleep
        self._clock = clock
        catalog = Catalog(
            [*open_repositories(options), *repositories],
            config_name=options.model_config_name,
            needs_config=options.disable_auto_complete_config,
            namespacing=options.model_namespacing,
        )
        self.endpoints = EndpointTable(self.missing_endpoint)
        host = Host(
            options,
            loop,
            self.endpoints,
            cache=cache,
            limiter=limiter,
            gpus=gpus,
            find_backend=find_backend,
            agree=agree,
        )
        super().__init__(catalog, host)
        self.place_on, self.overlay_by = host.place_on, host.overlay_by
        self._operations = Operations(loop)
        self.joining = Joining(
            self._catalog,
            self._registry,
            self._host,
            self._load,
            self._forget,
            self._operations.begin,
        )
        self._poller = Poller(
            self._compare, self._apply, self._operations, sleep, options.repository_poll_secs
        )
        self._stopping = False
        # A plugin sets it: which models of a look at all to load too, at the start in mode explicit.
        self.also_at_start: Callable[[Survey], Iterable[str]] | None = None

    # start and stop ------------------------------------------------------------

    async def start(self) -> None:
        """Load the models that the control mode selects. In mode poll, start to poll.

        With several workers none starts to poll: the supervisor starts each look in all of them.
        Raises CoreError if a repository cannot be read, or if a model fails and options.exit_on_error is set.
        """
        self._looking = True
        try:
            await self._host.run(self._catalog.check)
            failures = await self._operations.run(self._start())
        finally:
            self._looking = False
        if failures and self._options.exit_on_error:
            names = "', '".join(sorted(failures))
            hint = "with --exit-on-error=false the server starts without them"
            raise internal(f"failed to load all models: '{names}' cannot be loaded; {hint}")
        if self._mode == "poll" and self._options.workers == 1 and not self._stopping:
            self._poller.start()

    async def _start(self) -> Failures:
        if self._mode != "explicit":
            everything = await self._host.run(self._catalog.survey_all)
            self._looking = False
            return await self._registry.bring(everything)
        named: set[str] = set()
        for name in self._options.load_model:
            if name == "*":
                named.update(await self._host.run(self._catalog.names))
            else:
                named.update(await self._host.run(self._catalog.keys_of, name))
        if self.also_at_start is not None:
            named.update(self.also_at_start(await self._host.run(self._catalog.survey_all)))
        found = await self._host.run(self._catalog.survey_names, named)
        self._looking = False
        return await self._registry.bring(found, by_name=named)

    async def stop(self, timeout_s: float) -> int:
        """Finish requests in flight, unload all models, end all threads.

        Returns the number of model versions (and loads) that remain after `timeout_s`. Their work
        continues on threads that are left behind. New loads are refused.
        """
        self._stopping = True
        self._poller.stop()
        self._catalog.give_up()
        deadline = Deadline(timeout_s, self._sleep, self._clock)
        try:
            return await shut_down(self._registry, self._operations, self._host, deadline)
        finally:
            if self._catalog.remote:  # a separate thread: those of the host may have ended
                with ThreadPoolExecutor(1) as thread:
                    await self._host.loop.run_in_executor(thread, self._catalog.close)

    # control -------------------------------------------------------------------

    async def load(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Load a model and the models that it is composed of, or reload those that have changed.

        parameters   `config` (JSON text) and `file:<path>` (bytes) take precedence over the repository
        Returns when the model is ready. The operation continues if the caller is cancelled.
        Raises CoreError outside of mode explicit, at shutdown, and if it cannot load; serving versions stay.
        """
        self._refuse_uncontrolled()
        override = Override.of(parameters, self._options.model_override_max_byte_size)

        async def in_turn() -> None:
            async with self.joining.turn(name):
                await self._load(name, override)

        name = checked_name(name)
        await self._operations.run(in_turn())

    async def bring(self, name: str) -> None:
        """Load a model for the server itself: like `load` without parameters, in every control mode."""
        self._refuse_stopping()
        await self._operations.run(self._load(checked_name(name), None))

    async def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Unload a model and the ensembles that need it (mode explicit only). An unknown name is no error.

        unload_dependents   also unload the models that an ensemble is composed of, except those that
                            were loaded by name or that another ensemble needs
        Returns when no version is READY; the last requests may finish later.
        """
        self._refuse_uncontrolled()
        if keys := self._registry.keys_of(name):
            await self._operations.run(self._unload(keys, unload_dependents))

    async def rest(self, name: str, reason: str) -> bool:
        """Unload a model and the ensembles that need it until `bring`, in every control mode.

        name, reason   key of a model; "unloaded: <why>", for the index
        Returns True when they are unloaded, False if one is in use by another operation or unknown.
        """
        self._refuse_stopping()
        return await self._operations.run(self._registry.rest(name, reason))

    async def take_out(self, name: str) -> None:
        """Unload a model in every control mode. Forget it after its requests unless a repository has it."""
        self._refuse_stopping()
        if keys := self._registry.keys_of(name):
            await self._operations.run(self._unload(keys, False))
            for key in keys:
                self._operations.begin(self._forget_after(self._models.get(key)))

    async def join(self, place: ModelLocation) -> None:
        """Load a model from another folder, and include that folder in later looks.

        Models that it is composed of may lie beside it.

        Raises CoreError(ALREADY_EXISTS) if its name or location is in use, INVALID for blanks around it or if
        a neighbour's name is in use, and the errors of `load`; then nothing has joined.
        """
        self._refuse_uncontrolled()
        if checked_name(place.name) != place.name:
            raise invalid(f"invalid model name '{place.name}', there are blanks around it")
        await self._operations.run(self.joining.join(place))

    async def leave(self, name: str) -> None:
        """Unload a joined model with the models that it is composed of, and stop reading its folder.

        Returns when no version is READY; the last requests may finish later (`joining.is_empty`). A name
        without a joined model is no error.
        """
        self._refuse_uncontrolled()
        await self._operations.run(self.joining.leave(name))

    def _refuse_uncontrolled(self) -> None:
        if self._mode != "explicit":
            raise unavailable("explicit model load / unload is not allowed if polling is enabled")
        self._refuse_stopping()

    def _refuse_stopping(self) -> None:
        if self._stopping:
            raise unavailable("Server exiting")

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
            failures = await self._registry.bring(
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
            # If an ensemble fails because of a step, its error includes the step's reason.
            steps = [step for key in keys for step in needed_by(key, self._registry.steps())]
            lines = [failures[each] for each in dict.fromkeys([*keys, *steps]) if each in failures]
            raise CoreError(lines[0].kind, "".join(line.message for line in lines))

    async def _wake(self, names: Collection[str]) -> None:
        """Reload the wanted ensembles that need one of these models and do not serve."""
        if asleep := set(self._registry.asleep(names)) - set(names):
            await self._registry.bring(await self._host.run(self._catalog.survey_names, asleep))

    async def _unload(self, keys: Sequence[str], with_steps: bool) -> None:
        for key in keys:
            await self._registry.take_out(key, with_steps)
        await self._forget()

    async def _forget(self, keep: Iterable[str] = ()) -> None:
        try:
            names = await self._host.run(self._catalog.names)
        except OSError:  # unreadable now: the next operation looks again
            return
        self._registry.forget({*names, *self._options.load_model, *keep})

    async def _forget_after(self, model: ManagedModel | None) -> None:
        """Wait for the running unloads of a model, then forget it. Do nothing if none runs or it is None."""
        if model is not None and model.leaving:
            await asyncio.wait(model.leaving)
            await self._forget()

    # polling -------------------------------------------------------------------

    @property
    def polls(self) -> bool:
        """Return whether it polls the repositories (control mode poll)."""
        return self._mode == "poll"

    async def poll(self) -> None:
        """Look at the repositories now and apply the changes (control mode poll). Errors are logged."""
        await self._poller.poll()

    async def _compare(self) -> Changes:
        found = await self._host.run(self._catalog.survey_all)
        return changes(found, await self._host.run(self._catalog.names), self._models)

    async def _apply(self, before: Changes) -> None:
        """Look again. Load the changed models and unload the gone ones that `before` has just the same."""
        found = (await self._compare()).at_rest(before)
        for name in found.gone:
            if name in self._models:  # another operation may have forgotten it
                await self._registry.take_out(name)
        await self._registry.bring(found.changed)
        await self._wake(found.changed)
        await self._forget(keep=[name for name, model in self._models.items() if model.wanted])
