"""IdleTimers: unload a model that has had no request for as long as its memory.idle_secs says.

A model with sequences stays while a client may continue one, as for the budget.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from core.governing import ModelManager, ModelVersion
from core_memory_budget.reservations import Reservations
from core_memory_budget.residents import sequence_idle_s

IDLE = "unloaded: idle"
_AGAIN_S = 0.5  # until the next look, if another operation uses the model


class IdleTimers:
    """One timer for each loaded version with memory.idle_secs. Event loop only.

    now   seconds since the epoch
    """

    def __init__(
        self,
        manager: ModelManager,
        reservations: Reservations,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], float] = time.time,
    ):
        self._manager = manager
        self._reservations = reservations
        self._loop = loop
        self._now = now
        self._timers: dict[ModelVersion, asyncio.TimerHandle] = {}
        self._limits: dict[ModelVersion, tuple[float, float]] = {}  # idle seconds, time of the load
        self._unloads: set[asyncio.Task[None]] = set()

    def watch(self, version: ModelVersion, idle_s: float) -> None:
        """Unload the version's model once all its versions are idle. Do nothing for 0 seconds."""
        if idle_s:
            self._limits[version] = (idle_s, self._now())
            self._look_in(version, idle_s)

    def leave(self, version: ModelVersion) -> None:
        """Watch a version no longer."""
        self._limits.pop(version, None)
        if (timer := self._timers.pop(version, None)) is not None:
            timer.cancel()

    def close(self) -> None:
        """Watch no version any longer."""
        for version in list(self._limits):
            self.leave(version)

    def _look_in(self, version: ModelVersion, seconds: float) -> None:
        self._timers[version] = self._loop.call_later(seconds, self._look, version)

    def _look(self, version: ModelVersion) -> None:
        versions = [
            each
            for each in self._manager.versions()
            if each.key == version.key and each.state == "READY"
        ]
        left_s = max((self._left_s(each) for each in versions), default=0.0)
        if left_s > 0:
            self._look_in(version, left_s)
            return
        task = self._loop.create_task(self._unload(version))
        self._unloads.add(task)
        task.add_done_callback(self._unloads.discard)

    def _left_s(self, version: ModelVersion) -> float:
        """Return the seconds until a version is idle for long enough, as far as this is known now."""
        idle_s, loaded_at = self._limits.get(version, (0.0, 0.0))
        idle_s = max(idle_s, sequence_idle_s(version))  # live settings may change it
        if version.in_flight:
            return idle_s or _AGAIN_S
        last = max(loaded_at, version.statistics.last_inference_ms / 1e3)
        # A millisecond more: the time of the last request is a whole number of them.
        return last + idle_s + 0.001 - self._now() if last + idle_s > self._now() else 0.0

    async def _unload(self, version: ModelVersion) -> None:
        if not await self._reservations.rest(version.key, IDLE, "idle") and version in self._limits:
            self._look_in(version, _AGAIN_S)
