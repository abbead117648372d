"""The run of an instance, and its end before the time when nobody waits for it any more.

ModelInstance.execute, cancelled ─► [Termination] ─► what the framework has for it.
"""

from __future__ import annotations

import threading

from core.batch import Batch
from core.errors import CoreError, cancelled


class Termination:
    """Of the runs of one instance, one at a time. To be inherited from, with what `stop` and `clear` do.

    `begin` and `end` on the thread of execute, around a run; `now` on the loop thread, at any time.

    Invariant: `stop` is called only during a run of the batch that is meant, and `clear` at the end of each
    run for which it was called.
    """

    def __init__(self) -> None:
        self._running: Batch | None = None
        self._stopped = False
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
            if not self._stopped:
                return None
            self._stopped = False
            self.clear()
            return _nobody_waits()

    def now(self, batch: Batch) -> bool:
        """Break off the run of `batch`, if it runs; whether it does."""
        with self._changing:
            if self._running is not batch:
                return False
            self._stopped = True
            self.stop()
            return True

    def stop(self) -> None:
        """Tell the framework to end the run. It may be called more than once for a run, and must not wait."""
        raise NotImplementedError

    def clear(self) -> None:
        """Take that back, where it would hold for the next run too."""


def _nobody_waits() -> CoreError:
    return cancelled("all requests of the batch were cancelled")
