"""Group waiting requests into batches and give them to idle instances.

admit ─► [Batcher] ─► worker.  A batch is chosen when an instance is idle, never earlier, so that it
holds everything that came while the instances were busy. Nothing here touches tensor bytes.
Source of the rules: ModelDynamicBatching in Triton's model_config.proto and the behaviour of its
dynamic batch scheduler.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import cython

from core.backend import BatchRule
from core.errors import CoreError, DeadlineExceeded, cancelled, unavailable
from core.pipeline.admit import request_label
from core.pipeline.batching.estimate import WaitEstimate
from core.pipeline.batching.group import GroupKey
from core.pipeline.batching.queue import RequestQueue, Waiting, made_waiting
from core.pipeline.batching.scheduler import Scheduler
from core.pipeline.instances.pool import Pool
from core.request import InferenceRequest
from core.response import Reply, made_reply
from core.telemetry.statistics import Statistics

CLEARLY = 1.5  # times as long as the time left: an estimate is none the less one


@dataclass(frozen=True)
class BatchLimits:
    """What a batch may be.

    most_rows    largest batch; with 1 every request runs alone, whatever rows it has
    preferred    sizes that run at once when the queue reaches them
    delay_ns     longest wait of the oldest request for a better batch
    """

    most_rows: int = 1
    preferred: tuple[int, ...] = ()
    delay_ns: int = 0
    alone: bool = True


def choose(
    waiting: list[Waiting], limits: BatchLimits, now_ns: int, fits: BatchRule | None = None
) -> tuple[int, int]:
    """How many requests from the front run now, or when to look again.

    waiting   in the order in which they are to run, at least one
    fits      the model's own rule for this batch
    Returns (count, 0) to run `count` requests, or (0, time) to wait until `time` (ns, monotonic).
    """
    if limits.alone:
        return 1, 0
    largest_preferred = max(limits.preferred, default=0)
    prefers = largest_preferred > 0
    rows = best = fitting = 0
    oldest_ns = 0  # not of the first where a higher level came later
    complete = False  # nothing more can be added to what fits
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
        if fits is not None and not fits(request) and fitting:
            complete = True
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
    """The scheduler of a stateless model: what both kinds below share. Loop thread only.

    key     what requests of one batch must share, or None
    rules   gives the model's own rule for a batch, or None
    early   whether a request with a deadline that it cannot meet is refused when it comes
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
        self._pump_soon = False
        self._estimate = WaitEstimate(statistics) if early else None

    @property
    def pending(self) -> int:
        """Requests that wait."""
        return len(self._queue)

    def pending_by_priority(self) -> dict[int, int]:
        """See Scheduler."""
        return self._queue.by_level()

    def _push(self, waiting: Waiting) -> None:
        """Queue a request. Raises CoreError(UNAVAILABLE) if the queue is full, or DeadlineExceeded."""
        if waiting.request.deadline_ns and self._estimate is not None:
            self._refuse_late(waiting.request, self._estimate)
        self._queue.push(waiting)

    def _refuse_late(self, request: InferenceRequest, estimate: WaitEstimate) -> None:
        """Raise DeadlineExceeded for a request that would wait clearly longer than its client.

        Where the queue has times of its own the requests ahead may leave: those models are left out.
        """
        ahead = self._queue.ahead_of(request)
        if not ahead or self._queue.timed or self._pool.has_idle:
            return
        now_ns = self._clock.now_ns()
        left_ns = request.deadline_ns - now_ns
        wait_ns = estimate.wait_ns(ahead, len(self._pool.workers))
        if wait_ns > max(left_ns, 0) * CLEARLY:
            self._statistics.failed("DEADLINE", now_ns - request.arrival_ns)
            raise DeadlineExceeded(
                f"{request_label(request)} estimated wait {wait_ns / 1e9:.3g} s exceeds the time left "
                f"{left_ns / 1e9:.3g} s"
            )

    def put_back(self, waiting: Waiting) -> None:
        """A request asks for another execution. Its instance tells soon that it is idle."""
        if waiting.request.cancelled:
            self._refuse(waiting, cancelled(), "CANCELED")
        else:
            self._queue.put_back(waiting)

    def _expire(self, now_ns: int) -> None:
        """Refuse the requests whose time in the queue has passed."""
        for waiting in self._queue.expire(now_ns):
            self._refuse(waiting, unavailable("Request timeout expired"), "REJECTED")

    def _fail_all(self, error: CoreError) -> None:
        for waiting in list(self._queue.in_order()):
            self._queue.remove(waiting)
            self._refuse(waiting, error, "OTHER")

    def cancelled(self, waiting: Waiting) -> bool:
        """Nobody waits for the answer to a request that waited. Returns whether it was in the queue."""
        if not self._queue.remove(waiting):
            return False
        self._refuse(waiting, cancelled(), "CANCELED")
        return True


class SingleBatcher(Batcher):
    """Gives every request to an instance by itself. Loop thread only."""

    def ask(self, request: InferenceRequest) -> Reply:
        """Run an admitted request, or queue it. Raises as `_push`."""
        reply = made_reply(request)
        waiting = made_waiting(request, reply, None)
        if self._runs_at_once(waiting):
            return reply
        self._push(waiting)
        self.pump()
        if not waiting.taken:
            request.on_cancel(_leaving(self, waiting))
        return reply

    def _runs_at_once(self, waiting: Waiting) -> bool:
        """Run a request past the queue, if it is empty and an instance is idle."""
        if self._pumping or self._queue.waits() or (worker := self._pool.claim()) is None:
            return False
        waiting.taken = True
        self._pumping = True  # what an inline instance's answer brings in waits for its turn
        try:
            self._pool.run([waiting], worker)
        finally:
            self._pumping = False
        if self._queue.waits():
            self.pump()
        return True

    def _start_batches(self) -> int:
        queue = self._queue
        if queue.timed:
            self._expire(self._clock.now_ns())
        while queue.waits() and (worker := self._pool.claim()) is not None:
            chosen = queue.front(1)
            queue.take(chosen)
            self._pool.run(chosen, worker)
        return queue.next_expiry_ns() if queue.timed else 0


class GroupingBatcher(Batcher):
    """Gives requests to instances in batches (dynamic_batching). Loop thread only."""

    def ask(self, request: InferenceRequest) -> Reply:
        """Queue an admitted request. Raises as `_push`."""
        reply = made_reply(request)
        key = self._key.of(request) if self._key is not None else None
        waiting = made_waiting(request, reply, key)
        self._push(waiting)
        # Not at once: requests that arrive in one turn of the loop belong into one batch.
        self._look_soon()
        if not waiting.taken:
            request.on_cancel(_leaving(self, waiting))
        return reply

    def _start_batches(self) -> int:
        queue = self._queue
        now_ns = self._clock.now_ns()
        self._expire(now_ns)
        look_again_ns = 0
        while queue.waits() and (worker := self._pool.claim()) is not None:
            # As many requests from the front as one batch can look at.
            chosen = queue.front(self._limits.most_rows + 1)
            fits = None if self._rules is None else self._rules()
            count, look_again_ns = choose(chosen, self._limits, now_ns, fits)
            if not count:
                self._pool.unclaim(worker)
                break
            del chosen[count:]
            queue.take(chosen)
            self._pool.run(chosen, worker)
        expiry_ns = queue.next_expiry_ns() if queue.timed else 0
        if look_again_ns and expiry_ns:
            return min(look_again_ns, expiry_ns)
        return look_again_ns or expiry_ns

    def _look_soon(self) -> None:
        if not self._pump_soon:
            self._pump_soon = True
            self._loop.call_soon(self._pump_now)

    def _pump_now(self) -> None:
        self._pump_soon = False
        self.pump()

    def cancelled(self, waiting: Waiting) -> bool:
        """See Batcher."""
        left = Batcher.cancelled(self, waiting)
        if left:
            self._look_soon()  # without it the others may be a preferred size
        return left


@cython.freelist(64)
@cython.cclass
class _Leaving:
    """Takes a request out of its queue when it is called."""

    _batcher: Batcher
    _waiting: Waiting

    def __call__(self) -> None:
        self._batcher.cancelled(self._waiting)


def _leaving(batcher: Batcher, waiting: Waiting) -> _Leaving:
    leaving: _Leaving = _Leaving.__new__(_Leaving)
    leaving._batcher = batcher
    leaving._waiting = waiting
    return leaving


class InOrder:
    """A layer that gives answers in the order in which their requests came (preserve_ordering)."""

    def __init__(self, inner: Callable[[InferenceRequest], Reply]):
        self._inner = inner
        self._line: deque[_Held] = deque()
        self._giving = False

    def __call__(self, request: InferenceRequest) -> Reply:
        inner = self._inner(request)
        held = _Held(Reply(request))
        self._line.append(held)
        inner.listen(lambda item, final: self._arrived(held, item, final))
        return held.reply

    def _arrived(self, held: _Held, item: object, final: bool) -> None:
        held.items.append((item, final))
        held.complete = final
        if self._giving:  # who hears an answer may ask again, and be answered at once: it is last
            return
        self._giving = True
        try:
            self._give()
        finally:
            self._giving = False

    def _give(self) -> None:
        while self._line:
            first = self._line[0]
            while first.items:
                first.reply.send(*first.items.popleft())  # type: ignore[arg-type]
            if not first.complete:
                return
            self._line.popleft()


class _Held:
    """A reply whose answers wait for those before it."""

    def __init__(self, reply: Reply):
        self.reply = reply
        self.items: deque[tuple[object, bool]] = deque()
        self.complete = False
