"""What ends a run for which nobody waits any more."""

from __future__ import annotations

import threading
from typing import Any

from core.batch import Batch
from core.errors import CoreError, cancelled


class Termination:
    """The flag in one instance's RunOptions, which ONNX Runtime reads between two nodes of a graph.

    `begin` and `end` on the thread of execute, around a run; `now` on the loop thread, at any time.

    Invariant: the flag is up only during a run of the batch that it was raised for.
    """

    def __init__(self, options: Any):
        self._options = options
        self._running: Batch | None = None
        self._raised = False  # as is the flag, which costs more to look at
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
            if not self._raised:
                return None
            self._raised = self._options.terminate = False
            return _nobody_waits()

    def now(self, batch: Batch) -> None:
        """Break off the run of `batch`, if it runs."""
        with self._changing:
            if self._running is batch:
                self._raised = self._options.terminate = True


def _nobody_waits() -> CoreError:
    return cancelled("all requests of the batch were cancelled")
