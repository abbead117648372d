"""InstanceSlots: the sequences that one instance of a stateful model serves."""

from __future__ import annotations

import heapq
from collections import deque

from core.config import ModelConfig
from core.pipeline.batching.queue import QueuedRequest
from core.pipeline.instances.runner import InstanceRunner
from core.pipeline.sequence.states import States
from core.request import SEQUENCE_END
from core.tensor import Tensor

Id = int | str


class Sequence:
    """One sequence of requests. Not thread-safe: use it on the event loop only.

    waiting     its requests that have not run, in their order
    slots       slots of its instance; None while it waits for a slot
    slot        index of its slot there
    ending      whether a request with the END flag has arrived; if so, the next request starts a new sequence
    touched_ns  when its last request arrived or ran
    states      tensors that the server keeps for it, by input name; None before its first request runs
    running     whether a request uses its states now; if so, the next request waits until they are renewed
    """

    __slots__ = ("ending", "id", "running", "slot", "slots", "states", "touched_ns", "waiting")

    def __init__(self, id: Id, now_ns: int):
        self.id = id
        self.waiting: deque[QueuedRequest] = deque()
        self.slots: InstanceSlots | None = None
        self.slot = -1
        self.ending = False
        self.touched_ns = now_ns
        self.states: dict[str, Tensor] | None = None
        self.running = False

    def changed(self) -> None:
        """Tell its slots, if it has any, that `waiting` has changed."""
        if self.slots is not None:
            self.slots.note(self)


class InstanceSlots:
    """The slots of one instance: base class of the two strategies.

    Not thread-safe: call from the event loop only.

    sequences   the sequence of each slot; None for a free slot
    states      the implicit states of the model; None if it has none
    """

    def __init__(self, runner: InstanceRunner, count: int, states: States | None = None):
        self.runner = runner
        self.sequences: list[Sequence | None] = [None] * count
        self._free = list(range(count))  # a heap
        # The sequences with a slot and a waiting request. A set that keeps an order.
        self._with_requests: dict[Sequence, None] = {}
        self._states = states

    def configure(self, config: ModelConfig) -> None:
        """Take the delays and the batch sizes of a configuration."""
        raise NotImplementedError

    @property
    def has_work(self) -> bool:
        """Whether a sequence with a slot has a request that may run."""
        return any(not sequence.running for sequence in self._with_requests)

    @property
    def accepts_sequences(self) -> bool:
        """Whether the instance may serve further sequences."""
        return self.runner.broken is None and not self.runner.leaves

    @property
    def is_empty(self) -> bool:
        """Whether all slots are free."""
        return all(sequence is None for sequence in self.sequences)

    def ready(self) -> list[Sequence]:
        """Return the sequences whose next request may run, in no order. With states, renew its `key`."""
        ready = [sequence for sequence in self._with_requests if not sequence.running]
        if self._states is not None:
            for sequence in ready:
                head = sequence.waiting[0]
                head.key = self._states.key_of(sequence.states, head.request)
        return ready

    def free_slot(self) -> int | None:
        """Return the first free slot; None if there is none."""
        return self._free[0] if self._free else None

    def enter(self, sequence: Sequence, slot: int) -> None:
        """Give a sequence `slot`, which must be the result of `free_slot`."""
        heapq.heappop(self._free)
        sequence.slots, sequence.slot = self, slot
        self.sequences[slot] = sequence
        self.note(sequence)

    def note(self, sequence: Sequence) -> None:
        """Note whether a sequence with a slot has waiting requests."""
        self._with_requests.pop(sequence, None)
        if sequence.waiting:
            self._with_requests[sequence] = None

    def leave(self, sequence: Sequence) -> None:
        """Free the slot of a sequence."""
        self.sequences[sequence.slot] = None
        self._with_requests.pop(sequence, None)
        heapq.heappush(self._free, sequence.slot)
        sequence.slots = None

    def next_batch(self, now_ns: int) -> tuple[list[QueuedRequest], int]:
        """Take and return the requests to run now, and when to call again if there are none (ns; 0 never)."""
        raise NotImplementedError

    def take(self, sequence: Sequence, now_ns: int) -> QueuedRequest:
        """Return the next request of a sequence. If it is the last, free the slot.

        The slot may be given away before the request has run: the instance runs one batch at a time, so the
        next sequence in the slot runs later.
        """
        waiting = sequence.waiting.popleft()
        self.note(sequence)
        waiting.taken = True
        sequence.touched_ns = now_ns
        if self._states is not None:
            sequence.states = self._states.enter(sequence.states, waiting)
            sequence.running = True
        # If the request with END was cancelled, the one before it is the last.
        if waiting.request.flags & SEQUENCE_END or (sequence.ending and not sequence.waiting):
            self.leave(sequence)
        return waiting
