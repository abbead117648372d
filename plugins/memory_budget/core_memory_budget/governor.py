"""Governor: decides which versions are loaded, together with the budget; everything else asks it.

    a load (hook core_around_load) ─► stays at rest, or [Reservations] ─► [Measuring] ─► [Account]
    a request for a version that is out ─► [StandIns] ─► [WaitingRequests] ─► one load by ModelManager.bring

All state belongs to the event loop. Files are sized and memory is measured on worker threads.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar
from functools import partial
from typing import TYPE_CHECKING, cast

from core.control.health import HealthControl
from core.errors import AtRest, CoreError, internal, unavailable
from core.governing import ModelVersion, name_of
from core.repository import ModelSource
from core.request import InferenceRequest
from core.response import Reply
from core_memory_budget.account import Account, Entry, Need, found_out, of_backend, shown
from core_memory_budget.completed import completed
from core_memory_budget.idle import IdleTimers
from core_memory_budget.measure import Meter
from core_memory_budget.measuring import Measured, Measuring
from core_memory_budget.metrics import MemoryMetrics
from core_memory_budget.options import MemoryOptions, ModelMemory
from core_memory_budget.refresh import Refresher
from core_memory_budget.reservations import Reservations
from core_memory_budget.standing_in import StandIns
from core_memory_budget.waiting import WaitingRequests

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")

WAITS_FOR_MEMORY = "waits for memory"
_on_request: ContextVar[bool] = ContextVar("on_request", default=False)  # in a load on request


class Governor:
    """The memory of the models of one server process. Event loop only.

    account        what each version takes
    reservations   the budget
    stand_ins      what answers for versions that are out
    governs        (configuration) → whether the options or its parameters concern it; any thread
    """

    def __init__(
        self,
        server: InferenceServer,
        metrics: MemoryMetrics,
        meter: Meter,
        now: Callable[[], float] = time.time,
    ):
        options = MemoryOptions.of(server.options)
        self._options = options
        self.governs = options.governs
        self._manager = server.manager
        self._endpoints = server.models.endpoints
        self._health = cast(HealthControl, server.control.areas["health"])
        self._exchange = self._health.exchange
        self._explicit = server.options.model_control_mode == "explicit"
        self._polls = server.manager.polls
        self._named = set(server.options.load_model)
        self._metrics = metrics
        self._now = now
        self._loop = loop = asyncio.get_running_loop()
        self.account: Account = metrics.account
        workers = server.options.workers
        self.measuring = Measuring(meter, loop, options.measures, workers)
        budget = options.budget(meter.totals(), workers, meter.gpus)
        self.reservations = Reservations(
            budget,
            self.account,
            self._manager,
            metrics,
            self.measuring,
            self._pinned,
            lambda: {*self._asked, *(key for key, each in self._waiting.items() if each)},
            options.memory_wait_secs,
        )
        self.stand_ins = StandIns(loop, self._take, self._served)
        self.idle = IdleTimers(self._manager, self.reservations, loop, now)
        self.refresher = Refresher(self.account, self.measuring, self.reservations, loop)
        self._waiting: dict[str, WaitingRequests] = {}
        self._loads: dict[str, asyncio.Task[None]] = {}
        self._asked: Counter[str] = Counter()  # models that a load on request brings
        self._reserved: dict[tuple[str, int], Entry] = {}  # for these loads
        self._settings: dict[ModelVersion, ModelMemory] = {}  # of the loaded versions
        metrics.budget = budget
        metrics.waiting = self.waiting_requests
        self._manager.absent = self.stand_ins.find
        if self._explicit:
            self._manager.also_at_start = self._on_request

    # loads -----------------------------------------------------------------------

    @asynccontextmanager
    async def around(self, version: ModelVersion, nested: bool) -> AsyncIterator[None]:
        """Surround the load of a version: leave it at rest, or reserve memory, and measure the load.

        nested   whether another load waits for this one
        Raises AtRest, and MemoryRefused if the budget cannot hold it.
        """
        completed.learn(version)
        settings = ModelMemory.of(version.config, self._options.load_on_request)
        if self._stays_out(version, settings):
            raise AtRest("until a request")
        self._settings[version] = settings
        try:
            if version.source.steps:  # an ensemble takes no memory
                yield
                return
            need = await self._need(version, settings)
            # No await until entry.version is set: what has none is dropped by the load that reserved it.
            entry = self._reserved.pop((version.key, version.version), None)
            if entry is None:
                entry = Entry(version.source.key, version.version, {}, settings)
                version.progress.step = WAITS_FOR_MEMORY
                await self.reservations.reserve([entry], [need])
            entry.version, entry.settings, entry.state = version, settings, "loading"
            entry.loaded_at = self._now()
            try:
                async with self._measured(entry, version, nested, need):
                    yield
            except BaseException:
                self.account.drop(entry)
                self.reservations.changed()
                raise
        except BaseException:
            self._settings.pop(version, None)
            raise

    @asynccontextmanager
    async def _measured(
        self, entry: Entry, version: ModelVersion, nested: bool, need: Need
    ) -> AsyncIterator[None]:
        result = Measured()
        async with self.measuring.around(version, nested, result):
            start = self._loop.time()
            yield
            entry.load_s = self._loop.time() - start
        found = found_out(need, result, of_backend(version.memory_usage()))
        entry.bytes, entry.source, entry.exact, entry.known = found
        entry.own = result.own if entry.source == "measured" and result.exact else 0
        self.account.learn(version, entry, result.peak if result.exact else {})
        if entry.known:
            version.measured = shown(entry)
        entry.state, entry.loaded_at = "loaded", self._now()
        self.reservations.changed()
        if self._options.measures:
            self.refresher.loaded()

    def _stays_out(self, version: ModelVersion, settings: ModelMemory) -> bool:
        """Return whether a load leaves the version at rest: nothing needs it yet."""
        if self._asked[version.key]:
            return False
        out = any(self.stand_ins.find(step, -1) is not None for step in version.source.steps)
        if not settings.on_request and not out:
            return False
        starting = not self._health.loaded
        if starting and self._explicit and version.name in self._named:
            return False  # the command line names it
        if self._manager.ready_versions(version.key):
            return False
        # A load by name brings the models of all namespaces. A request needs only one of them.
        return starting or self._polls or (version.namespace is not None and _on_request.get())

    async def _need(self, version: ModelVersion, settings: ModelMemory) -> Need:
        return await self._loop.run_in_executor(None, self.account.need, version, settings)

    def _on_request(self, survey: Mapping[str, ModelSource | CoreError]) -> list[str]:
        """Return the keys of the models that are loaded on request."""
        found = []
        for key, source in survey.items():
            if isinstance(source, ModelSource):
                try:
                    settings = ModelMemory.of(source.config, self._options.load_on_request)
                except CoreError:
                    continue  # its load reports the error
                if settings.on_request:
                    found.append(key)
        return found

    def _pinned(self) -> set[str]:
        return {version.key for version, settings in self._settings.items() if settings.pin}

    # states ----------------------------------------------------------------------

    def changed(self, version: ModelVersion, state: str) -> None:
        """Follow the state of a version (hook core_model_changed)."""
        entry = self.account.of(version)
        if state == "ready":
            self.stand_ins.remove(version.key, version.version)
            if settings := self._settings.get(version):
                self.idle.watch(version, settings.idle_s)
        elif state == "unloading":
            self.idle.leave(version)
            if entry is not None:
                entry.state = "unloading"
            if version.at_rest:
                self.stand_ins.add(version)
        elif state in ("gone", "failed"):
            self._settings.pop(version, None)
            if entry is not None:
                self.account.drop(entry)
                self.measuring.disturb()
            if version.at_rest:
                self.stand_ins.add(version)
            elif state == "gone":
                self.stand_ins.remove(version.key, version.version)
            self.reservations.changed()

    def close(self) -> None:
        """End what still waits; the server has stopped."""
        self.idle.close()
        self.refresher.close()
        for load in self._loads.values():
            load.cancel()
        for each in self._waiting.values():
            each.failed(unavailable("Server exiting"))

    # requests --------------------------------------------------------------------

    def _take(self, key: str, request: InferenceRequest) -> Reply:
        """Let a request wait for the load of its model."""
        return self.waiting(key).take(request)

    def waiting(self, key: str) -> WaitingRequests:
        """Return the requests that wait for a model."""
        found = self._waiting.get(key)
        if found is None:
            found = self._waiting[key] = WaitingRequests(
                key,
                self._loop,
                partial(self._begin, key),
                self._submit,
                partial(self._metrics.waited, str(key)),
                self._options.memory_waiting_requests,
                self._options.memory_wait_secs,
            )
        return found

    def waiting_requests(self) -> dict[str, int]:
        """Return key → number of requests that wait, of each model that was ever waited for."""
        return {str(key): len(each) for key, each in self._waiting.items()}

    def _served(self, key: str) -> bool:
        waiting = self._waiting.get(key)
        return waiting is None or waiting.refusal is None

    def _submit(self, request: InferenceRequest) -> Reply:
        return self._endpoints.find(request.model_name, request.model_version).submit(request)

    def _begin(self, key: str) -> None:
        """Start a load of a model, unless one runs."""
        if key not in self._loads:
            # Not in the context of the request: a control operation may be running in that.
            task = Context().run(self._loop.create_task, self._load(key))
            self._loads[key] = task

    async def _load(self, key: str) -> None:
        """Load a model for the requests that wait; tell them how it ended."""
        waiting = self.waiting(key)
        logger.info("loading '%s' on request", key)
        before = self.stand_ins.of(key)
        _on_request.set(True)  # of this task alone
        error: CoreError | None = None
        unloaded: list[str] = []
        try:
            unloaded = await self._bring(key)
        except CoreError as raised:
            error = raised
        except Exception as raised:
            logger.exception("loading '%s' on request failed", key)
            error = internal(f"{type(raised).__name__}: {raised}")
        finally:
            del self._loads[key]
        self._metrics.loads[str(key), "failure" if error else "success"] += 1
        if error is not None:
            waiting.failed(error)
        else:
            for version in before:
                if version in self.stand_ins.of(key):  # the repository has this version no longer
                    self.stand_ins.remove(key, version.version)
            waiting.loaded(unloaded)

    async def _bring(self, key: str) -> list[str]:
        """Load a model, with the models that it is composed of: memory for all of them, or for none.

        Returns the keys of the models that were unloaded to make room.
        """
        unloaded: list[str] = []
        keys = self.stand_ins.composing(key)
        entries: list[Entry] = []
        default = self._options.load_on_request
        # Others may unload one of them until memory is reserved.
        while missing := self._missing(keys):
            for entry in entries:
                self.account.drop(entry)
            entries = [
                Entry(each.source.key, each.version, {}, ModelMemory.of(each.config, default))
                for each in missing
            ]
            needs = [await self._need(v, e.settings) for v, e in zip(missing, entries, strict=True)]
            unloaded += await self.reservations.reserve(entries, needs)
        self._reserved |= {(entry.key, entry.number): entry for entry in entries}
        self._asked.update(keys)
        try:
            # The keys of stand-ins are plain text, also in a namespace.
            name = next((each.name for each in self.stand_ins.of(key)), name_of(key))
            bring = self._manager.bring(name)
            await (bring if self._exchange is None else self._exchange.alone(bring))
        finally:
            self._asked.subtract(keys)
            self._asked += Counter()  # drops what is 0
            for entry in entries:
                # Another load on request may have reserved memory for the same model.
                if self._reserved.get((entry.key, entry.number)) is entry:
                    del self._reserved[entry.key, entry.number]
                if entry.version is None:
                    self.account.drop(entry)
            self.reservations.changed()
        return unloaded

    def _missing(self, keys: list[str]) -> list[ModelVersion]:
        """Return the versions that are out and have no memory reserved."""
        out = (version for key in keys for version in self.stand_ins.of(key))
        return [v for v in out if not v.source.steps and not self.account.has(v.key, v.version)]
