"""Batcher: groups waiting requests into batches and gives them to idle instances.

admit ─► [Batcher] ─► runner.  A batch is chosen when an instance is idle, never earlier, so it can hold all
requests that arrived while the instances were busy, up to its limits. This module reads no tensor bytes.
Source of the rules: ModelDynamicBatching in Triton's model_config.proto and the behaviour of its
dynamic batch scheduler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import cython

from core.backend import BatchRule
from core.errors import CoreError, DeadlineExceeded, cancelled, unavailable
from core.pipeline.admit import request_label
from core.pipeline.batching.estimate import WaitEstimate
from core.pipeline.batching.group import GroupKey
from core.pipeline.batching.queue import (
    QueuedRequest,
    QueueSettings,
    RequestQueue,
    new_queued_request,
)
from core.pipeline.batching.scheduler import Scheduler
from core.pipeline.instances.pool import Pool
from core.request import InferenceRequest
from core.response import Reply, new_reply
from core.telemetry.statistics import Statistics

REFUSE_FACTOR = (
    1.5  # an estimated wait must exceed the time left by this factor, since it is an estimate
)


@dataclass(frozen=True)
class BatchLimits:
    """Limits of a batch.

    most_rows    most rows of a batch
    preferred    sizes that run at once when the queue reaches them
    delay_ns     longest wait of the oldest request for a larger batch
    alone        whether every request runs alone, however many rows it has
    """

    most_rows: int = 1
    preferred: tuple[int, ...] = ()
    delay_ns: int = 0
    alone: bool = True


def choose(
    waiting: list[QueuedRequest], limits: BatchLimits, now_ns: int, fits: BatchRule | None = None
) -> tuple[int, int]:
    """Choose how many requests from the front run now, or when to choose again.

    waiting   in the order in which they run, at least one
    fits      the rule of the model or a plugin for this batch; or None
    Return (count, 0) to run `count` requests, or (0, time) to wait until `time` (ns, monotonic).
    """
    if limits.alone:
        return 1, 0
    largest_preferred = max(limits.preferred, default=0)
    prefers = largest_preferred > 0
    rows = best = fitting = 0
    oldest_ns = 0  # the first may not be the oldest: a higher priority may have arrived later
    complete = False  # whether no further request can join the batch
    key = None
    for entry in waiting:
        request = entry.request
        size = max(1, request.rows)
        if not fitting:
            oldest_ns = request.arrival_ns
            key = entry.key
        elif rows + size > limits.most_rows or (entry.key is not key and entry.key != key):
            complete = True
            break
        if fits is not None and not complete and not fits(request):
            complete = True
        if complete and fitting:
            break
        if fitting and rows + size > largest_preferred and not best:
            best = fitting
        rows += size
        fitting += 1
        if request.arrival_ns < oldest_ns:
            oldest_ns = request.arrival_ns
        if prefers and rows in limits.preferred:
            best = fitting
    late = limits.delay_ns > 0 and now_ns - oldest_ns >= limits.delay_ns
    if best and not late:
        return best, 0
    if complete or rows >= largest_preferred or late or not limits.delay_ns:
        return fitting, 0
    return 0, oldest_ns + limits.delay_ns


class Batcher(Scheduler):
    """Base class of the schedulers of stateless models.

    Not thread-safe: call from the event loop only.

    key     function of a request: only requests with equal keys share a batch; None if all may
    rules   function that returns the rule for the next batch; None if neither model nor plugin has one
    early   whether a request is refused on arrival if its estimated wait clearly exceeds the time left
    """

    def __init__(
        self,
        *,
        queue: RequestQueue,
        limits: BatchLimits,
        statistics: Statistics,
        loop: asyncio.AbstractEventLoop,
        pool: Pool,
        on_final: Callable[[], None],
        key: GroupKey | None = None,
        rules: Callable[[], BatchRule] | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        early: bool = True,
    ):
        super().__init__(
            statistics=statistics, loop=loop, pool=pool, on_final=on_final, clock_ns=clock_ns
        )
        self._queue = queue
        self._limits = limits
        self._key = key
        self._rules = rules
        self._pump_scheduled = False
        self._estimate = WaitEstimate(statistics) if early else None

    @property
    def pending(self) -> int:
        """Number of requests that wait."""
        return len(self._queue)

    def pending_by_priority(self) -> dict[int, int]:
        """Return priority level → number of requests that wait; {} without priorities."""
        return self._queue.by_level()

    def configure(self, limits: BatchLimits, queue: QueueSettings) -> None:
        """Take other limits, with the same `alone`, and queue policies. Call `pump` next."""
        self._limits = limits
        self._queue.configure(*queue)

    def _push(self, waiting: QueuedRequest) -> None:
        """Queue a request. Raise CoreError(UNAVAILABLE) if the queue is full, or as `_refuse_late` does."""
        if waiting.request.deadline_ns and self._estimate is not None:
            self._refuse_late(waiting.request, self._estimate)
        self._queue.push(waiting)

    def _refuse_late(self, request: InferenceRequest, estimate: WaitEstimate) -> None:
        """Raise DeadlineExceeded if the estimated wait clearly exceeds the time left.

        Do nothing if no request is ahead, if an instance is idle, or if the queue has timeouts: requests
        ahead may then leave unrun.
        """
        ahead = self._queue.ahead_of(request)
        if not ahead or self._queue.timed or self._pool.has_idle:
            return
        now_ns = self._clock.now_ns()
        left_ns = request.deadline_ns - now_ns
        wait_ns = estimate.wait_ns(ahead, len(self._pool.runners))
        if wait_ns > max(left_ns, 0) * REFUSE_FACTOR:
            self._statistics.failed("DEADLINE", now_ns - request.arrival_ns)
            raise DeadlineExceeded(
                f"{request_label(request)} estimated wait {wait_ns / 1e9:.3g} s exceeds the time left "
                f"{left_ns / 1e9:.3g} s"
            )

    def put_back(self, waiting: QueuedRequest) -> None:
        """Queue a request again that asks for another execution; refuse it if it is cancelled."""
        if waiting.request.cancelled:
            self._refuse(waiting, cancelled(), "CANCELED")
        else:
            self._queue.put_back(waiting)

    def _expire(self, now_ns: int) -> None:
        """Refuse the requests whose queue timeout has passed, or delay them if their policy says so."""
        for waiting in self._queue.expire(now_ns):
            self._refuse(waiting, unavailable("Request timeout expired"), "REJECTED")

    def _fail_all(self, error: CoreError) -> None:
        for waiting in list(self._queue.in_order()):
            self._queue.remove(waiting)
            self._refuse(waiting, error, "OTHER")

    def cancelled(self, waiting: QueuedRequest) -> bool:
        """Take a cancelled request out of the queue and refuse it. Return False if it is not in the queue."""
        if not self._queue.remove(waiting):
            return False
        self._refuse(waiting, cancelled(), "CANCELED")
        return True


class SingleBatcher(Batcher):
    """Scheduler that gives every request to an instance alone."""

    def submit(self, request: InferenceRequest) -> Reply:
        """Run an admitted request, or queue it.

        Raise CoreError(UNAVAILABLE) if the queue is full, or DeadlineExceeded.
        """
        reply = new_reply(request)
        waiting = new_queued_request(request, reply, None)
        if self._runs_at_once(waiting):
            return reply
        self._push(waiting)
        self.pump()
        if not waiting.taken:
            request.on_cancel(_new_remover(self, waiting))
        return reply

    def _runs_at_once(self, waiting: QueuedRequest) -> bool:
        """Start a request and return True if none waits and an instance is idle; else return False."""
        if self._pumping or self._queue.waits() or (runner := self._pool.claim()) is None:
            return False
        waiting.taken = True
        self._pumping = True  # requests that listeners send during `run` go to the queue
        try:
            self._pool.run([waiting], runner)
        finally:
            self._pumping = False
        if self._queue.waits():
            self.pump()
        return True

    def _start_batches(self) -> int:
        queue = self._queue
        if queue.timed:
            self._expire(self._clock.now_ns())
        while queue.waits() and (runner := self._pool.claim()) is not None:
            chosen = queue.front(1)
            queue.take(chosen)
            self._pool.run(chosen, runner)
        return queue.next_expiry_ns() if queue.timed else 0


class GroupingBatcher(Batcher):
    """Scheduler that gives requests to instances in batches (dynamic_batching)."""

    def submit(self, request: InferenceRequest) -> Reply:
        """Queue an admitted request. Raise CoreError(UNAVAILABLE) for a full queue, or DeadlineExceeded."""
        reply = new_reply(request)
        key = self._key.of(request) if self._key is not None else None
        waiting = new_queued_request(request, reply, key)
        self._push(waiting)
        # Later, so that requests that arrive in one iteration of the loop can form one batch.
        self._pump_later()
        if not waiting.taken:
            request.on_cancel(_new_remover(self, waiting))
        return reply

    def _start_batches(self) -> int:
        queue = self._queue
        now_ns = self._clock.now_ns()
        self._expire(now_ns)
        next_time_ns = 0
        while queue.waits() and (runner := self._pool.claim()) is not None:
            # One request more than a batch can have, to see whether the batch is complete.
            chosen = queue.front(self._limits.most_rows + 1)
            fits = None if self._rules is None else self._rules()
            count, next_time_ns = choose(chosen, self._limits, now_ns, fits)
            if not count:
                self._pool.unclaim(runner)
                break
            del chosen[count:]
            queue.take(chosen)
            self._pool.run(chosen, runner)
        expiry_ns = queue.next_expiry_ns() if queue.timed else 0
        if next_time_ns and expiry_ns:
            return min(next_time_ns, expiry_ns)
        return next_time_ns or expiry_ns

    def _pump_later(self) -> None:
        if not self._pump_scheduled:
            self._pump_scheduled = True
            self._loop.call_soon(self._pump_now)

    def _pump_now(self) -> None:
        self._pump_scheduled = False
        self.pump()

    def cancelled(self, waiting: QueuedRequest) -> bool:
        """Take a cancelled request out of the queue and refuse it. Return False if it is not in the queue."""
        removed = Batcher.cancelled(self, waiting)
        if removed:
            self._pump_later()  # the remaining requests may have a preferred size
        return removed


@cython.freelist(64)
@cython.cclass
class _Remover:
    """Cancel listener that removes a request from its queue."""

    _batcher: Batcher
    _waiting: QueuedRequest

    def __call__(self) -> None:
        self._batcher.cancelled(self._waiting)


def _new_remover(batcher: Batcher, waiting: QueuedRequest) -> _Remover:
    remover: _Remover = _Remover.__new__(_Remover)
    remover._batcher = batcher
    remover._waiting = waiting
    return remover
