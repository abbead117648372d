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

    @property
    def answered(self) -> bool:
        """Whether any request has had its last answer."""
        return len(self.open) < len(self.batch.requests)


def behind_the_first(active: dict[int, Active]) -> dict[int, Active]:
    """Take out the batches that a child had behind the one that it was to execute."""
    waiting = [number for number, one in active.items() if one.done is not None]
    return {n: active.pop(n) for n in waiting[1:] if not active[n].answered}


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
