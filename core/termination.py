"""Termination: stop the run of an instance when all requests of its batch are cancelled.

ModelInstance.execute, cancelled ─► [Termination] ─► the framework's way to stop a run
"""

from __future__ import annotations

import threading

from core.batch import Batch
from core.errors import CoreError, cancelled


class Termination:
    """Base class that stops the runs of one instance. Subclasses implement `stop` and `clear`.

    Call `begin` and `end` around a run, on the thread of execute; call `now` on the event loop, at any time.

    Invariant: `stop` is called only while the given batch runs, and `clear` at the end of each run that was
    stopped.
    """

    def __init__(self) -> None:
        self._running: Batch | None = None
        self._stopped = False
        self._changing = threading.Lock()

    def begin(self, batch: Batch) -> None:
        """Announce a run of `batch`. Raises CoreError(CANCELLED) if all of its requests are cancelled."""
        with self._changing:
            for request in batch.requests:
                if not request.cancelled:
                    self._running = batch
                    return
        raise _all_cancelled()

    def end(self) -> CoreError | None:
        """End the run.

        Return the error to raise in place of the framework's if the run was stopped; else None.
        """
        with self._changing:
            self._running = None
            if not self._stopped:
                return None
            self._stopped = False
            self.clear()
            return _all_cancelled()

    def now(self, batch: Batch) -> bool:
        """Stop the run of `batch` if it runs now. Return whether it does."""
        with self._changing:
            if self._running is not batch:
                return False
            self._stopped = True
            self.stop()
            return True

    def stop(self) -> None:
        """Let the framework end the run. It may be called several times for a run, and must not block."""
        raise NotImplementedError

    def clear(self) -> None:
        """Undo `stop`, if it would affect the next run."""


def _all_cancelled() -> CoreError:
    return cancelled("all requests of the batch were cancelled")
