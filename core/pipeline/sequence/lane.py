"""Lane: one instance of a stateful model and the sequences that belong to it."""

from __future__ import annotations

import heapq
from collections import deque

from core.pipeline.batching.queue import Waiting
from core.pipeline.instances.worker import Worker
from core.pipeline.sequence.states import States
from core.request import SEQUENCE_END
from core.tensor import Tensor

Id = int | str


class Sequence:
    """One sequence of requests. Loop thread only.

    waiting     its requests that have not run, in their order
    lane, slot  where it belongs; None while it waits for a place
    ending      a request with the END flag has come: the next one begins another sequence
    touched_ns  when its last request came or ran
    states      what the server keeps for it, by input name; None before its first request
    running     a request has its states, the next one waits until they are renewed
    """

    __slots__ = ("ending", "id", "lane", "running", "slot", "states", "touched_ns", "waiting")

    def __init__(self, id: Id, now_ns: int):
        self.id = id
        self.waiting: deque[Waiting] = deque()
        self.lane: Lane | None = None
        self.slot = -1
        self.ending = False
        self.touched_ns = now_ns
        self.states: dict[str, Tensor] | None = None
        self.running = False


class Lane:
    """The places of one instance. Loop thread only.

    slots   a sequence for each place, None for a free one
    states  what is kept for sequences, None for a model without implicit state
    """

    def __init__(self, worker: Worker, places: int, states: States | None = None):
        self.worker = worker
        self.slots: list[Sequence | None] = [None] * places
        self._free = list(range(places))  # a heap
        self._states = states

    @property
    def has_work(self) -> bool:
        """Whether a sequence with a place has a request that may run."""
        return any(s is not None and s.waiting and not s.running for s in self.slots)

    @property
    def takes_sequences(self) -> bool:
        """Whether its instance will be there for more than it has."""
        return self.worker.broken is None and not self.worker.leaves

    @property
    def is_empty(self) -> bool:
        """Whether no sequence has a place."""
        return all(sequence is None for sequence in self.slots)

    def ready(self) -> list[Sequence]:
        """The sequences whose next request may run, in the order of their places."""
        ready = [s for s in self.slots if s is not None and s.waiting and not s.running]
        if self._states is not None:
            for sequence in ready:
                head = sequence.waiting[0]
                head.key = self._states.key_of(sequence.states, head.request)
        return ready

    def free_slot(self) -> int | None:
        """The first free place."""
        return self._free[0] if self._free else None

    def enter(self, sequence: Sequence, slot: int) -> None:
        """Give a sequence the first free place."""
        heapq.heappop(self._free)
        sequence.lane, sequence.slot = self, slot
        self.slots[slot] = sequence

    def leave(self, sequence: Sequence) -> None:
        self.slots[sequence.slot] = None
        heapq.heappush(self._free, sequence.slot)
        sequence.lane = None

    def next_batch(self, now_ns: int) -> tuple[list[Waiting], int]:
        """Requests that run now, taken from their sequences; or when to look again (ns, 0: never)."""
        raise NotImplementedError

    def take(self, sequence: Sequence, now_ns: int) -> Waiting:
        """The next request of a sequence; with its last one the sequence leaves its place.

        The place is free at once: what comes into it runs after, since the instance runs one batch
        at a time.
        """
        waiting = sequence.waiting.popleft()
        waiting.taken = True
        sequence.touched_ns = now_ns
        if self._states is not None:
            sequence.states = self._states.enter(sequence.states, waiting)
            sequence.running = True
        # Its END may have been cancelled: then the last one before it is the last.
        if waiting.request.flags & SEQUENCE_END or (sequence.ending and not sequence.waiting):
            self.leave(sequence)
        return waiting
