"""Lane: one instance of a stateful model and the sequences that belong to it."""

from __future__ import annotations

from collections import deque

from core.pipeline.queue import Waiting
from core.pipeline.worker import Worker
from core.request import SEQUENCE_END

Id = int | str


class Sequence:
    """One sequence of requests. Loop thread only.

    waiting     its requests that have not run, in their order
    lane, slot  where it belongs; None while it waits for a place
    ending      a request with the END flag has come: the next one begins another sequence
    touched_ns  when its last request came or ran
    """

    __slots__ = ("ending", "id", "lane", "slot", "touched_ns", "waiting")

    def __init__(self, id: Id, now_ns: int):
        self.id = id
        self.waiting: deque[Waiting] = deque()
        self.lane: Lane | None = None
        self.slot = -1
        self.ending = False
        self.touched_ns = now_ns


class Lane:
    """The places of one instance. Loop thread only.

    slots   a sequence for each place, None for a free one
    """

    def __init__(self, worker: Worker, places: int):
        self.worker = worker
        self.slots: list[Sequence | None] = [None] * places

    @property
    def has_work(self) -> bool:
        """Whether a sequence with a place has a request that waits."""
        return any(sequence is not None and sequence.waiting for sequence in self.slots)

    def free_slot(self) -> int | None:
        """The first free place."""
        for slot, sequence in enumerate(self.slots):
            if sequence is None:
                return slot
        return None

    def enter(self, sequence: Sequence, slot: int) -> None:
        sequence.lane, sequence.slot = self, slot
        self.slots[slot] = sequence

    def leave(self, sequence: Sequence) -> None:
        self.slots[sequence.slot] = None
        sequence.lane = None

    def next_batch(self, now_ns: int) -> tuple[list[Waiting], int]:
        """Requests that run now, taken from their sequences; or when to look again (ns, 0: never)."""
        raise NotImplementedError

    def take(self, sequence: Sequence, now_ns: int) -> Waiting:
        """The next request of a sequence; with its END the sequence leaves its place.

        The place is free at once: what comes into it runs after, since the instance runs one batch
        at a time.
        """
        waiting = sequence.waiting.popleft()
        waiting.taken = True
        sequence.touched_ns = now_ns
        if waiting.request.flags & SEQUENCE_END:
            self.leave(sequence)
        return waiting
