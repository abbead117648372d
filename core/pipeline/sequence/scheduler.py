"""SequenceScheduler: who gets a place in an instance, who waits for one, who has been idle too long.

What the batcher is for stateless models. Source of the rules: ModelSequenceBatching in Triton's
model_config.proto and the behaviour of its sequence batcher.
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
from core.pipeline.batching.batcher import BatchLimits
from core.pipeline.batching.queue import Waiting
from core.pipeline.batching.scheduler import Scheduler
from core.pipeline.instances.pool import Pool
from core.pipeline.instances.worker import Worker
from core.pipeline.sequence.controls import control_writer
from core.pipeline.sequence.direct import DirectLane
from core.pipeline.sequence.lane import Id, Lane, Sequence
from core.pipeline.sequence.oldest import OldestLane
from core.pipeline.sequence.states import States
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.response import Reply
from core.telemetry.statistics import Statistics


class SequenceScheduler(Scheduler):
    """The scheduler of one version of a stateful model. Loop thread only.

    Invariants:
    1. `_sequences` has the sequences that still take requests, by id.
    2. A sequence is in `_backlog` until it has a place; it leaves its place when its END runs.
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
        self._config = config
        self._name = config.name
        self._idle_ns = config.sequence_batching.max_sequence_idle_microseconds * 1000
        self._iterative = config.sequence_batching.iterative_sequence
        self._generated_ids = itertools.count(1)
        self._controls = control_writer(config)
        self._key = key
        self._states = States(signature, key) if signature.states else None
        self._lanes: list[Lane] = []
        self._leaving = False  # some instance shall leave when its sequences have ended
        self._sequences: dict[Id, Sequence] = {}
        self._backlog: deque[Sequence] = deque()
        self._pending = 0
        self._last = False  # no other request comes
        self._look_ns = 0  # until then no sequence has been idle for too long

    @property
    def pending(self) -> int:
        """Requests that wait."""
        return self._pending

    def changed(self, added: list[Worker]) -> None:
        """Each new instance gets a lane of places; one that shall leave serves its sequences first."""
        self._lanes.extend(self._lane(worker) for worker in added)
        self._leaving = any(lane.worker.leaves for lane in self._lanes)
        self._retire_empty()

    def nothing_follows(self) -> None:
        """Sequences that only wait for their next request end: others wait for their places."""
        if not self._last:
            self._last = True
            self.pump()

    def _lane(self, worker: Worker) -> Lane:
        batching = self._config.sequence_batching
        rows = max(1, self._config.max_batch_size)
        if batching.HasField("oldest"):
            oldest = batching.oldest
            limits = BatchLimits(
                most_rows=rows,
                preferred=tuple(oldest.preferred_batch_size),
                delay_ns=oldest.max_queue_delay_microseconds * 1000,
                alone=not self._config.max_batch_size,
            )
            places = max(1, oldest.max_candidate_sequences)
            return OldestLane(worker, places, limits, self._states)
        direct = batching.direct
        return DirectLane(
            worker,
            rows,
            direct.max_queue_delay_microseconds * 1000,
            direct.minimum_slot_utilization,
            self._controls,
            self._states,
        )

    def ask(self, request: InferenceRequest) -> Reply:
        """Queue an admitted request of a sequence.

        Raises CoreError(INVALID) for a request that belongs to none.
        """
        sequence = self._sequence_of(request)
        self._controls(request, True)
        waiting = Waiting(request, Reply(request), self._key(request) if self._key else None)
        sequence.waiting.append(waiting)
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
        """A request that is a sequence by itself: it runs until it asks for no other execution."""
        if request.correlation_id:
            raise invalid(
                f"{request_label(request)} inference request to model '{self._name}' must not specify "
                "a correlation ID: the model has iterative_sequence, each request is a sequence"
            )
        request.correlation_id = next(self._generated_ids)
        request.flags = request.flags & ~SEQUENCE_END | SEQUENCE_START  # it ends when it says so
        sequence = Sequence(request.correlation_id, self._clock.now_ns())
        self._backlog.append(sequence)
        return sequence

    def put_back(self, waiting: Waiting) -> None:
        """A request asks for another execution: it is the next of its sequence."""
        self._pending += 1
        sequence = self._placed(waiting)
        sequence.running = False
        if waiting.request.cancelled:
            self._refuse(waiting, cancelled(), "CANCELED")
            self._abandon(sequence)
            return
        waiting.request.flags &= ~SEQUENCE_START
        self._controls(waiting.request, True)
        waiting.taken = False
        sequence.waiting.appendleft(waiting)

    def _placed(self, waiting: Waiting) -> Sequence:
        """The sequence of a request that has run; it has kept its place."""
        id = waiting.request.correlation_id
        return next(
            sequence
            for lane in self._lanes
            for sequence in lane.slots
            if sequence is not None and sequence.id == id
        )

    def _ended(self, sequence: Sequence) -> None:
        """A request has had its last answer: the next may run. An iterative one leaves its place."""
        sequence.running = False
        if self._iterative and sequence.lane is not None:
            sequence.lane.leave(sequence)
        if self._states is not None and (sequence.waiting or self._iterative):
            self.pump()  # its instance may have been idle since before this answer

    def _start_batches(self) -> int:
        now_ns = self._clock.now_ns()
        self._leave_broken()
        if self._last or now_ns >= self._look_ns:
            self._end_idle(now_ns)
        again_ns = 0
        progress = True
        while progress:
            progress = self._give_places()
            for lane in self._lanes:
                if not self._pool.is_idle(lane.worker) or not lane.has_work:
                    continue
                if self._pool.claim(lane.worker) is None:
                    continue
                batch, later_ns = lane.next_batch(now_ns)
                if not batch:
                    self._pool.unclaim(lane.worker)
                if batch:
                    self._pending -= sum(waiting.counts for waiting in batch)
                    self._pool.run(batch, lane.worker)
                    progress = True
                elif later_ns:
                    again_ns = min(again_ns or later_ns, later_ns)
        if self._leaving:
            self._retire_empty()
        return min(again_ns or self._look_ns, self._look_ns) if self._sequences else again_ns

    def _retire_empty(self) -> None:
        """The instances that shall leave and have no sequence any more."""
        for lane in [each for each in self._lanes if each.worker.leaves and each.is_empty]:
            self._lanes.remove(lane)
            self._pool.retire(lane.worker)
        self._leaving = any(lane.worker.leaves for lane in self._lanes)

    def _give_places(self) -> bool:
        """Sequences from the backlog enter free places: low slots first, so that instances share."""
        given = False
        while self._backlog:
            free = [
                (slot, index)
                for index, lane in enumerate(self._lanes)
                if lane.takes_sequences and (slot := lane.free_slot()) is not None
            ]
            if not free:
                break
            slot, index = min(free)
            sequence = self._backlog.popleft()
            self._lanes[index].enter(sequence, slot)
            self._may_be_idle(sequence)
            given = True
        return given

    def _end_idle(self, now_ns: int) -> None:
        """End the sequences that nobody has used for too long, or that nobody can go on with.

        Only the time without a waiting request counts: a sequence cannot help waiting in a queue.
        With thousands of sequences this takes long, so it is done when the first may have to go, and
        not for each request: who is touched after now goes later.
        """
        next_ns = now_ns + self._idle_ns
        for sequence in list(self._sequences.values()):
            if sequence.waiting or sequence.lane is None:
                continue
            ends_ns = sequence.touched_ns + self._idle_ns
            if ends_ns <= now_ns or self._last:
                del self._sequences[sequence.id]
                sequence.lane.leave(sequence)
            elif ends_ns < next_ns:
                next_ns = ends_ns
        self._look_ns = next_ns

    def _may_be_idle(self, sequence: Sequence) -> None:
        """It has a place and perhaps no request, and was touched before the last look at all."""
        if not sequence.waiting:
            self._look_ns = min(self._look_ns, sequence.touched_ns + self._idle_ns)

    def _leave_broken(self) -> None:
        """Sequences of an instance that is out of service end: what it knew of them is lost."""
        for lane in self._lanes:
            if lane.worker.broken is None:
                continue
            error = unavailable(f"the instance of the sequence is gone: {lane.worker.broken}")
            for sequence in lane.slots:
                if sequence is not None:
                    self._end(sequence)
                    self._refuse_all(sequence, error)

    def _end(self, sequence: Sequence) -> None:
        """It takes no more requests, and gives up its place."""
        if self._sequences.get(sequence.id) is sequence:
            del self._sequences[sequence.id]
        self._abandon(sequence)

    def _cancelled(self, sequence: Sequence, waiting: Waiting) -> None:
        if waiting.taken:
            return
        waiting.taken = True
        sequence.waiting.remove(waiting)
        self._refuse(waiting, cancelled(), "CANCELED")
        if (sequence.ending or self._iterative) and not sequence.waiting:
            self._abandon(sequence)
        self._may_be_idle(sequence)
        self.pump()

    def _abandon(self, sequence: Sequence) -> None:
        """A sequence whose END will not run gives up its place."""
        if sequence.lane is not None:
            sequence.lane.leave(sequence)
        elif sequence in self._backlog:
            self._backlog.remove(sequence)

    def _fail_all(self, error: CoreError) -> None:
        placed = [s for lane in self._lanes for s in lane.slots if s is not None]
        for sequence in [*placed, *self._backlog]:
            self._refuse_all(sequence, error)

    def _refuse_all(self, sequence: Sequence, error: CoreError) -> None:
        while sequence.waiting:
            waiting = sequence.waiting.popleft()
            waiting.taken = True
            self._refuse(waiting, error, "OTHER")

    def _refuse(self, waiting: Waiting, error: CoreError, reason: str) -> None:
        self._pending -= 1
        super()._refuse(waiting, error, reason)
