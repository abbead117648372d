"""The opened instances of one model version: who is idle, and what runs where."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

from core.backend import ModelInstance
from core.errors import CoreError
from core.pipeline.answers.delivery import BatchDelivery, Terms
from core.pipeline.batching.queue import Waiting
from core.pipeline.instances.auto import AutoWorker
from core.pipeline.instances.callback import CallbackWorker
from core.pipeline.instances.limit import Demand, RateLimiter, Turn
from core.pipeline.instances.worker import Idle, InlineWorker, LoopWorker, ThreadWorker, Worker


class Pool:
    """Loop thread only.

    terms      of the deliveries
    on_idle    called when an instance has become idle or may go on, and when the last one has broken
               (written by who owns the pool, before it opens)
    limiter    of the server, None without a rate limit
    workers    the opened instances
    broken     why no instance is left, None while there is one
    """

    def __init__(self, terms: Terms, limiter: RateLimiter | None = None):
        self.workers: list[Worker] = []
        self.broken: BaseException | None = None
        self.on_idle: Callable[[], None] = _nobody_waits
        self._terms = terms
        self._idle: list[Worker] = []
        self._unready = False  # an instance is not ready; as of the last time that one has changed
        self._aside: list[Worker] = []  # idle ones that are not ready, while another one is
        self._limiter = limiter
        self._turns: dict[Worker, Turn] = {}

    @property
    def ready(self) -> bool:
        """Whether an instance can serve."""
        return any(w.broken is None and w.instance.ready() for w in self.workers)

    async def check(self) -> bool:
        """Whether an instance can serve, after all have been asked."""
        asked = [w.instance.check() for w in self.workers if w.broken is None]
        return any(await asyncio.gather(*asked))

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
        worker.run(BatchDelivery(waiting, self._terms))

    async def open(self, wanted: list[tuple[ModelInstance, Demand]]) -> None:
        """Open every instance; if one fails, close the others and raise its exception.

        Raises CoreError(INVALID) if one demands more resources than the rate limiter has.
        """
        instances = [instance for instance, _ in wanted]
        loop = self._terms.loop
        limited = self._limiter is not None
        for each in instances:
            each.changed = self._changed
        workers = [worker_for(each, loop, self._became_idle, limited) for each in instances]
        results = await asyncio.gather(*(w.open() for w in workers), return_exceptions=True)
        self.workers = [w for w, r in zip(workers, results, strict=True) if r is None]
        if failure := next((r for r in results if r is not None), None):
            await self.close()
            raise failure
        if self._limiter is not None:
            try:
                for worker, (_, demand) in zip(self.workers, wanted, strict=True):
                    self._register(worker, demand, self._limiter)
            except CoreError:
                await self.close()
                raise
        self._idle.extend(self.workers)
        self._changed()

    def _register(self, worker: Worker, demand: Demand, limiter: RateLimiter) -> None:
        def woken() -> None:
            self.on_idle()
            if self.is_idle(worker):
                limiter.let_pass(turn)

        turn = self._turns[worker] = limiter.register(demand, woken)

    async def close(self) -> None:
        """Close the instances, each where it ran. A second call does nothing."""
        workers, self.workers = self.workers, []
        self._idle.clear()
        self._aside.clear()
        if self._limiter is not None:
            for turn in self._turns.values():
                self._limiter.forget(turn)
        self._turns.clear()
        await asyncio.gather(*(worker.close() for worker in workers))

    def _became_idle(self, worker: Worker, delivery: BatchDelivery) -> None:
        if worker.broken is not None:
            if all(other.broken is not None for other in self.workers):
                self.broken = worker.broken
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
    instance: ModelInstance, loop: asyncio.AbstractEventLoop, idle: Idle, limited: bool = False
) -> Worker:
    """The worker that an instance asks for by `placement`, or by being a coroutine.

    limited   by a rate limiter
    """
    if instance.placement == "callback":
        return CallbackWorker(instance, loop, idle, limited)
    if inspect.iscoroutinefunction(instance.execute):
        return LoopWorker(instance, loop, idle)
    if instance.placement == "inline":
        return InlineWorker(instance, loop, idle)
    if instance.placement == "auto":
        return AutoWorker(instance, loop, idle)
    return ThreadWorker(instance, loop, idle)


def _nobody_waits() -> None:
    """In the place of `on_idle` until there is a scheduler."""
