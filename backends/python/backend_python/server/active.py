"""Batches that a child has, and how many it may have."""

from __future__ import annotations

from collections.abc import Callable

from core.batch import Batch

SHORT_NS = 100_000  # executions below it are sent ahead
AHEAD = 16  # batches
_TRIAL = 16  # executions before the first is sent ahead

Done = Callable[[BaseException | None], None]


class Active:
    """A batch whose requests have not all had their last answer.

    done   to be called when the execution is over; None then
    open   requests without their last answer
    """

    __slots__ = ("batch", "done", "open")

    def __init__(self, batch: Batch, done: Done):
        self.batch = batch
        self.done: Done | None = done
        self.open = set(range(len(batch.requests)))


class Took:
    """How long executions take.

    short   whether all of late were so short that the way to the child and back takes longer
    """

    __slots__ = ("_seen", "short")

    def __init__(self) -> None:
        self.short = False
        self._seen = 0

    def add(self, ns: int) -> None:
        if ns >= SHORT_NS:
            self.short = False
            self._seen = 0
        elif not self.short:
            self._seen += 1
            self.short = self._seen >= _TRIAL
