"""The opened instances of one model version: who is idle, and what runs where."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

from core.backend import Model, ModelInstance
from core.errors import CoreError, unavailable
from core.pipeline.answers.delivery import BatchDelivery, Terms, made_delivery
from core.pipeline.batching.queue import Waiting
from core.pipeline.instances.auto import AutoWorker
from core.pipeline.instances.callback import CallbackWorker
from core.pipeline.instances.groups import Seat
from core.pipeline.instances.limit import Demand, RateLimiter, Turn
from core.pipeline.instances.worker import InlineWorker, LoopWorker, Owner, ThreadWorker, Worker
from core.settle import Settle


class Pool(Owner):
    """Instances come in two steps: `open` makes them, beside those that serve, and `admit` lets them
    serve. They go in two as well: from `retire` on one gets nothing, and when it has answered what it
    has it closes. Loop thread only.

    terms      of the deliveries
    on_idle    called when an instance has become idle or may go on, and when the last one has broken
               (written by who owns the pool, before it opens)
    limiter    of the server, None without a rate limit
    workers    those that serve
    passive    those that are open and stand by
    broken     why no instance serves, None while one does
    """

    def __init__(self, terms: Terms, limiter: RateLimiter | None = None):
        self.workers: list[Worker] = []
        self.passive: list[Worker] = []
        self.broken: BaseException | None = None
        self.on_idle: Callable[[], None] = _nobody_waits
        self._terms = terms
        self._idle: list[Worker] = []
        self._unready = False  # an instance is not ready; as of the last time that one has changed
        self._aside: list[Worker] = []  # idle ones that are not ready, while another one is
        self._limiter = limiter
        self._turns: dict[Worker, Turn] = {}
        self._trials: dict[Worker, asyncio.Future[None]] = {}
        self._retiring: dict[Worker, asyncio.Task[None]] = {}

    @property
    def ready(self) -> bool:
        """Whether an instance can serve."""
        return any(w.broken is None and w.instance.ready() for w in self.workers)

    async def check(self) -> bool:
        """Whether an instance can serve, after all have been asked."""
        asked = [w.instance.check() for w in self.workers if w.broken is None]
        return any(await asyncio.gather(*asked))

    @property
    def takes_device(self) -> bool:
        """Whether an instance takes arrays on devices as they are."""
        return any(worker.on_device for worker in self.workers)

    @property
    def has_idle(self) -> bool:
        """Whether an instance has nothing to do."""
        return bool(self._idle or self._aside)

    def is_idle(self, worker: Worker) -> bool:
        return worker in self._idle or worker in self._aside

    def claim(self, worker: Worker | None = None) -> Worker | None:
        """An idle worker that may execute now: the given one, or the one that is idle for longest.

        None if there is none; `on_idle` is called when there may be. Follow it with `run`, or with
        `unclaim` if there is nothing to run after all.
        """
        if worker is None and self._limiter is None:
            return self._idle[0] if self._idle else None
        for idle in [worker] if worker is not None else list(self._idle):
            if not self.is_idle(idle):
                continue
            if self._limiter is None or self._limiter.take(self._turns[idle]):
                return idle
        return None

    def unclaim(self, worker: Worker) -> None:
        """A claimed worker has nothing to execute."""
        if self._limiter is not None:
            self._limiter.let_pass(self._turns[worker])

    def run(self, waiting: list[Waiting], worker: Worker) -> None:
        """Execute a batch on a claimed worker."""
        if self._idle and self._idle[0] is worker:
            del self._idle[0]
        elif worker in self._idle:
            self._idle.remove(worker)
        else:
            self._aside.remove(worker)
        worker.run(made_delivery(waiting, self._terms, worker.held))

    async def try_out(self, waiting: list[Waiting], worker: Worker) -> None:
        """Execute a batch on a worker that does not serve yet; returns when it is idle again.

        A rate limit does not hold: the instance is no part of the traffic.
        """
        idle = self._trials[worker] = self._terms.loop.create_future()
        worker.run(made_delivery(waiting, self._terms, worker.held))
        await idle

    async def open(self, model: Model, seats: list[Seat]) -> list[Worker]:
        """Open instances that do not serve yet; if one fails, close the others and raise its exception.

        Raises CoreError(INVALID) if one demands more resources than the rate limiter has.
        """
        workers = [self._worker(model, seat) for seat in seats]
        results = await asyncio.gather(*(w.open() for w in workers), return_exceptions=True)
        opened = [w for w, r in zip(workers, results, strict=True) if r is None]
        if failure := next((r for r in results if r is not None), None):
            await self.discard(opened)
            raise failure
        for worker in opened:
            worker.on_device = worker.instance.memory == "device"
        if self._limiter is not None:
            try:
                for worker in opened:
                    if not worker.seat.passive:
                        self._register(worker, worker.seat.demand, self._limiter)
            except CoreError:
                await self.discard(opened)
                raise
        return opened

    def _worker(self, model: Model, seat: Seat) -> Worker:
        instance = seat.instance(model)
        instance.changed = self._changed
        limited = self._limiter is not None
        worker = worker_for(instance, self._terms.loop, self, limited)
        worker.seat = seat
        return worker

    async def discard(self, workers: list[Worker]) -> None:
        """Close what `open` gave and nobody has admitted."""
        for worker in workers:
            self._forget(worker)
        await asyncio.gather(*(worker.close() for worker in workers))

    def admit(self, workers: list[Worker]) -> None:
        """Opened instances serve from now on, those that are passive stand by."""
        for worker in workers:
            if worker.seat.passive:
                self.passive.append(worker)
                continue
            self.workers.append(worker)
            if worker.broken is None:
                self._idle.append(worker)
        self._find_broken()
        self._changed()

    def retire(self, worker: Worker) -> None:
        """An instance gets nothing more, and closes when it has answered what it holds."""
        if worker in self.passive:
            self.passive.remove(worker)
        else:
            self.workers.remove(worker)
        if self.is_idle(worker):
            (self._idle if worker in self._idle else self._aside).remove(worker)
            self._forget(worker)  # it may wait for resources, which would be kept for it
        self._find_broken()
        self._unready = not all(w.instance.ready() for w in self.workers)
        back = self._sort_out()
        if back or self.broken is not None or self._limiter is not None:
            # Not at once: this may be called while batches start, when nobody else can.
            self._terms.loop.call_soon(self.on_idle)
        self._retiring[worker] = self._terms.loop.create_task(self._leave(worker))

    async def _leave(self, worker: Worker) -> None:
        if worker.held.count:
            answered = self._terms.loop.create_future()
            worker.held.on_none = Settle(answered)
            await answered
        self._forget(worker)
        await worker.close()
        self._retiring.pop(worker, None)

    def _find_broken(self) -> None:
        reasons = [worker.broken for worker in self.workers]
        if None in reasons:
            self.broken = None
        else:
            self.broken = next(iter(reasons), None) or unavailable("all are passive")

    def _register(self, worker: Worker, demand: Demand, limiter: RateLimiter) -> None:
        def woken() -> None:
            self.on_idle()
            if self.is_idle(worker):
                limiter.let_pass(turn)

        turn = self._turns[worker] = limiter.register(demand, woken)

    def _forget(self, worker: Worker) -> None:
        turn = self._turns.pop(worker, None)
        if turn is not None and self._limiter is not None:
            self._limiter.forget(turn)

    async def close(self) -> None:
        """Close the instances, each where it ran. A second call does nothing."""
        workers = self.workers + self.passive
        self.workers, self.passive = [], []
        self._idle.clear()
        self._aside.clear()
        for worker in [*workers, *self._retiring]:
            self._forget(worker)
            if worker.held.on_none is not None:  # nobody will answer what it still holds
                worker.held.on_none()
        await asyncio.gather(*(w.close() for w in workers), *self._retiring.values())

    def became_idle(self, worker: Worker, delivery: BatchDelivery) -> None:
        """A worker of this pool has executed a batch."""
        if self._trials:
            trial = self._trials.pop(worker, None)
            if trial is not None:
                if not trial.done():
                    trial.set_result(None)
                return
        if worker.broken is not None:
            self._left_service(worker)
        elif worker in self.workers:
            self._idle.append(worker)
            if self._unready:
                self._sort_out()
        if self._limiter is not None and worker in self._turns:
            self._limiter.executed(self._turns[worker])
            self.on_idle()
            self._limiter.settle()
        else:
            self.on_idle()

    def _left_service(self, worker: Worker) -> None:
        """A worker has broken. It may be idle already: another of its batches may have begun before."""
        self._idle = [each for each in self._idle if each is not worker]
        self._aside = [each for each in self._aside if each is not worker]
        if self._unready:
            self._sort_out()  # no instance that is ready may be left
        if all(other.broken is not None for other in self.workers):
            self.broken = worker.broken

    def _changed(self) -> None:
        """An instance has become ready, or is so no more."""
        self._unready = not all(w.instance.ready() for w in self.workers)
        if self._sort_out():
            self.on_idle()

    def _sort_out(self) -> bool:
        """Keep the idle instances that are not ready aside, as long as another one is ready. Whether
        one came back."""
        apart = self._unready and self.ready
        back = [w for w in self._aside if not apart or w.instance.ready()]
        away = [w for w in self._idle if apart and not w.instance.ready()]
        self._aside = [w for w in self._aside if w not in back] + away
        self._idle = [w for w in self._idle if w not in away] + back
        return bool(back)


def worker_for(
    instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: Owner, limited: bool = False
) -> Worker:
    """The worker that an instance asks for by `placement`, or by being a coroutine.

    limited   by a rate limiter
    """
    if instance.placement == "callback":
        return CallbackWorker(instance, loop, owner, limited)
    if inspect.iscoroutinefunction(instance.execute):
        instance.host_policy.tell_loop(instance.name)
        return LoopWorker(instance, loop, owner)
    if instance.host_policy.cores:
        return ThreadWorker(instance, loop, owner)
    if instance.placement == "inline":
        return InlineWorker(instance, loop, owner)
    if instance.placement == "auto":
        return AutoWorker(instance, loop, owner)
    return ThreadWorker(instance, loop, owner)


def _nobody_waits() -> None:
    """In the place of `on_idle` until there is a scheduler."""
