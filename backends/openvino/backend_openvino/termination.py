"""What ends a run for which nobody waits any more."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from core.batch import Batch
from core.errors import CoreError, cancelled

_AGAIN_S = 0.02  # until OpenVINO is told once more


class Termination:
    """Breaks off the runs of one infer request, which OpenVINO does between two operations.

    `begin` and `end` on the thread of execute, around a run; `now` on the loop thread, at any time.

    Invariant: OpenVINO is told only during the run of the batch that is meant.
    """

    def __init__(self, request: Any, loop: asyncio.AbstractEventLoop):
        self._request = request
        self._loop = loop
        self._running: Batch | None = None
        self._told = False
        self._changing = threading.Lock()

    def begin(self, batch: Batch) -> None:
        """A run of `batch` follows. Raises CoreError(CANCELLED) where that is of no use to anybody."""
        with self._changing:
            for request in batch.requests:
                if not request.cancelled:
                    self._running = batch
                    return
        raise _nobody_waits()

    def end(self) -> CoreError | None:
        """The run is over; the error to give where it was broken off, whatever it raised."""
        with self._changing:
            self._running = None
            if not self._told:
                return None
            self._told = False
            return _nobody_waits()

    def now(self, batch: Batch) -> None:
        """Break off the run of `batch`, if it runs."""
        with self._changing:
            if self._running is not batch:
                return
            self._told = True
            self._request.cancel()
        # OpenVINO forgets what it is told shortly before it begins.
        self._loop.call_later(_AGAIN_S, self.now, batch)


def _nobody_waits() -> CoreError:
    return cancelled("all requests of the batch were cancelled")
