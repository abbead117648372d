"""SequenceScheduler: gives sequences slots in instances, and ends sequences that are idle for too long.

Source of the rules: ModelSequenceBatching in Triton's model_config.proto and the behaviour of its sequence
batcher.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable

from core.config import ModelConfig, Signature
from core.errors import CoreError, cancelled, invalid, unavailable
from core.pipeline.admit import request_label
from core.pipeline.batching.queue import QueuedRequest
from core.pipeline.batching.scheduler import Scheduler
from core.pipeline.instances.pool import Pool
from core.pipeline.instances.runner import InstanceRunner
from core.pipeline.sequence.controls import control_writer
from core.pipeline.sequence.direct import DirectSlots
from core.pipeline.sequence.oldest import OldestSlots
from core.pipeline.sequence.slots import Id, InstanceSlots, Sequence
from core.pipeline.sequence.states import States
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.response import Reply
from core.telemetry.statistics import Statistics


class SequenceScheduler(Scheduler):
    """The scheduler of one version of a stateful model. Event loop only. Invariants:

    1. `_sequences` has the sequences that accept requests, by id.
    2. A sequence is in `_backlog` until it has a slot. It keeps the slot until its END runs, or it is
       idle for too long or abandoned.
    """

    def __init__(
        self,
        *,
        config: ModelConfig,
        signature: Signature,
        statistics: Statistics,
        loop: asyncio.AbstractEventLoop,
        pool: Pool,
        on_final: Callable[[], None],
        key: Callable[[InferenceRequest], object] | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ):
        super().__init__(
            statistics=statistics, loop=loop, pool=pool, on_final=on_final, clock_ns=clock_ns
        )
        self._name = config.name
        self._iterative = config.sequence_batching.iterative_sequence
        self._generated_ids = itertools.count(1)
        self._controls = control_writer(config)
        self._key = key
        self._states = States(signature, key) if signature.states else None
        self._slots: list[InstanceSlots] = []
        self._leaving = False  # whether an instance leaves when its sequences have ended
        self._sequences: dict[Id, Sequence] = {}
        self._backlog: deque[Sequence] = deque()
        self._pending = 0
        self._closing = False  # whether sequences that wait for requests end
        self.configure(config)

    def configure(self, config: ModelConfig) -> None:
        """Take the delays and sizes of a configuration; sequences keep their slots. Call `pump` next."""
        self._config = config
        self._idle_ns = config.sequence_batching.max_sequence_idle_microseconds * 1000
        self._idle_check_ns = 0  # no sequence is idle for too long before this time
        for slots in self._slots:
            slots.configure(config)

    @property
    def pending(self) -> int:
        """Number of requests that wait."""
        return self._pending

    def changed(self, added: list[InstanceRunner]) -> None:
        """Create slots for new instances. An instance that leaves serves its sequences first."""
        self._slots.extend(
            new_slots(self._config, runner, self._controls, self._states) for runner in added
        )
        self._leaving = any(slots.runner.leaves for slots in self._slots)
        self._retire_empty()

    def end_waiting_sequences(self) -> None:
        """From now on, end sequences that have a slot and no request, since others wait for their slots."""
        if not self._closing:
            self._closing = True
            self.pump()

    def submit(self, request: InferenceRequest) -> Reply:
        """Queue an admitted request. Raise CoreError(INVALID) if id, START or rows do not fit a sequence."""
        sequence = self._sequence_of(request)
        self._controls(request, True)
        waiting = QueuedRequest(request, Reply(request), self._key(request) if self._key else None)
        sequence.waiting.append(waiting)
        if len(sequence.waiting) == 1:
            sequence.changed()
        sequence.touched_ns = self._clock.now_ns()
        if self._iterative or self._states is not None:
            waiting.ended = lambda: self._ended(sequence)
        self._pending += 1
        if request.flags & SEQUENCE_END:
            sequence.ending = True
            del self._sequences[sequence.id]
        request.on_cancel(lambda: self._cancelled(sequence, waiting))
        self.pump()
        return waiting.reply

    def _sequence_of(self, request: InferenceRequest) -> Sequence:
        if self._iterative:
            return self._iteration_of(request)
        id = request.correlation_id
        if not id:
            raise invalid(
                f"{request_label(request)} inference request to model '{self._name}' must specify a "
                "non-zero or non-empty correlation ID"
            )
        if request.rows > 1:
            raise invalid(
                f"{request_label(request)} inference request to model '{self._name}' must specify "
                "batch-size 1 due to requirements of sequence batcher"
            )
        if (sequence := self._sequences.get(id)) is not None:
            return sequence
        if not request.flags & SEQUENCE_START:
            raise invalid(
                f"{request_label(request)} inference request for sequence {id} to model "
                f"'{self._name}' must specify the START flag on the first request of the sequence"
            )
        sequence = self._sequences[id] = Sequence(id, self._clock.now_ns())
        self._backlog.append(sequence)
        return sequence

    def _iteration_of(self, request: InferenceRequest) -> Sequence:
        """Make a request a new sequence: set id and flags. Raise CoreError(INVALID) if it has an id."""
        if request.correlation_id:
            raise invalid(
                f"{request_label(request)} inference request to model '{self._name}' must not specify "
                "a correlation ID: the model has iterative_sequence, each request is a sequence"
            )
        request.correlation_id = next(self._generated_ids)
        request.flags = (
            request.flags & ~SEQUENCE_END | SEQUENCE_START
        )  # the model decides when it ends
        sequence = Sequence(request.correlation_id, self._clock.now_ns())
        self._backlog.append(sequence)
        return sequence

    def put_back(self, waiting: QueuedRequest) -> None:
        """Queue a request again, as next of its sequence. If cancelled, refuse it and end the sequence."""
        self._pending += 1
        sequence = self._sequence_with_slot(waiting)
        sequence.running = False
        if waiting.request.cancelled:
            self._refuse(waiting, cancelled(), "CANCELED")
            self._abandon(sequence)
            return
        waiting.request.flags &= ~SEQUENCE_START
        self._controls(waiting.request, True)
        waiting.taken = False
        sequence.waiting.appendleft(waiting)
        sequence.changed()

    def _sequence_with_slot(self, waiting: QueuedRequest) -> Sequence:
        """Return the sequence of a request that has run. It has kept its slot."""
        id = waiting.request.correlation_id
        return next(
            sequence
            for slots in self._slots
            for sequence in slots.sequences
            if sequence is not None and sequence.id == id
        )

    def _ended(self, sequence: Sequence) -> None:
        """Let the next request run after a request has ended. An iterative sequence leaves its slot."""
        sequence.running = False
        if self._iterative and sequence.slots is not None:
            sequence.slots.leave(sequence)
        if self._states is not None and (sequence.waiting or self._iterative):
            self.pump()  # the instance may be idle already

    def _start_batches(self) -> int:
        now_ns = self._clock.now_ns()
        self._end_broken()
        if self._closing or now_ns >= self._idle_check_ns:
            self._end_idle(now_ns)
        again_ns = 0
        progress = True
        while progress:
            progress = self._assign_slots()
            for slots in self._slots:
                if not self._pool.is_idle(slots.runner) or not slots.has_work:
                    continue
                if self._pool.claim(slots.runner) is None:
                    continue
                batch, later_ns = slots.next_batch(now_ns)
                if not batch:
                    self._pool.unclaim(slots.runner)
                if batch:
                    self._pending -= sum(waiting.counts for waiting in batch)
                    self._pool.run(batch, slots.runner)
                    progress = True
                elif later_ns:
                    again_ns = min(again_ns or later_ns, later_ns)
        if self._leaving:
            self._retire_empty()
        return (
            min(again_ns or self._idle_check_ns, self._idle_check_ns)
            if self._sequences
            else again_ns
        )

    def _retire_empty(self) -> None:
        """Retire the leaving instances that have no sequences."""
        for slots in [each for each in self._slots if each.runner.leaves and each.is_empty]:
            self._slots.remove(slots)
            self._pool.retire(slots.runner)
        self._leaving = any(slots.runner.leaves for slots in self._slots)

    def _assign_slots(self) -> bool:
        """Give sequences of the backlog free slots, low slots first, so that instances share the load.

        Return whether a sequence has got a slot.
        """
        assigned = False
        while self._backlog:
            free = [
                (slot, index)
                for index, slots in enumerate(self._slots)
                if slots.accepts_sequences and (slot := slots.free_slot()) is not None
            ]
            if not free:
                break
            slot, index = min(free)
            sequence = self._backlog.popleft()
            self._slots[index].enter(sequence, slot)
            self._schedule_idle_check(sequence)
            assigned = True
        return assigned

    def _end_idle(self, now_ns: int) -> None:
        """End the sequences that are idle for too long; when closing, all that have no request.

        A sequence with a waiting request is not idle. This loop is slow with thousands of sequences, so it
        runs only when the first sequence may be idle for too long, not for each request.
        """
        next_ns = now_ns + self._idle_ns
        for sequence in list(self._sequences.values()):
            if sequence.waiting or sequence.slots is None:
                continue
            ends_ns = sequence.touched_ns + self._idle_ns
            if ends_ns <= now_ns or self._closing:
                del self._sequences[sequence.id]
                sequence.slots.leave(sequence)
            elif ends_ns < next_ns:
                next_ns = ends_ns
        self._idle_check_ns = next_ns

    def _schedule_idle_check(self, sequence: Sequence) -> None:
        """If no request of a sequence waits, check it when it would have been idle for too long.

        Call `pump` afterwards: it does the check.
        """
        if not sequence.waiting:
            self._idle_check_ns = min(self._idle_check_ns, sequence.touched_ns + self._idle_ns)

    def _end_broken(self) -> None:
        """End the sequences of broken instances, whose state is lost, and refuse their requests."""
        for slots in self._slots:
            if slots.runner.broken is None:
                continue
            error = unavailable(f"the instance of the sequence is gone: {slots.runner.broken}")
            for sequence in slots.sequences:
                if sequence is not None:
                    if self._sequences.get(sequence.id) is sequence:
                        del self._sequences[sequence.id]
                    self._abandon(sequence)
                    self._refuse_all(sequence, error)

    def _cancelled(self, sequence: Sequence, waiting: QueuedRequest) -> None:
        if waiting.taken:
            return
        waiting.taken = True
        sequence.waiting.remove(waiting)
        sequence.changed()
        self._refuse(waiting, cancelled(), "CANCELED")
        if (sequence.ending or self._iterative) and not sequence.waiting:
            self._abandon(sequence)
        self._schedule_idle_check(sequence)
        self.pump()

    def _abandon(self, sequence: Sequence) -> None:
        """Free the slot, or the place in the backlog, of a sequence whose END will not run."""
        if sequence.slots is not None:
            sequence.slots.leave(sequence)
        elif sequence in self._backlog:
            self._backlog.remove(sequence)

    def _fail_all(self, error: CoreError) -> None:
        placed = [s for slots in self._slots for s in slots.sequences if s is not None]
        for sequence in [*placed, *self._backlog]:
            self._refuse_all(sequence, error)

    def _refuse_all(self, sequence: Sequence, error: CoreError) -> None:
        while sequence.waiting:
            waiting = sequence.waiting.popleft()
            waiting.taken = True
            self._refuse(waiting, error, "OTHER")
        sequence.changed()

    def _refuse(self, waiting: QueuedRequest, error: CoreError, reason: str) -> None:
        self._pending -= 1
        super()._refuse(waiting, error, reason)


def new_slots(
    config: ModelConfig,
    runner: InstanceRunner,
    controls: Callable[[InferenceRequest, bool], None],
    states: States | None,
) -> InstanceSlots:
    """Return the slots of an instance, of the strategy that the configuration names."""
    if config.sequence_batching.HasField("oldest"):
        return OldestSlots(runner, config, states)
    return DirectSlots(runner, config, controls, states)
