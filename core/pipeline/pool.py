"""The opened instances of one model version: who is idle, and what runs where."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from core.backend import ModelInstance
from core.pipeline.delivery import BatchDelivery
from core.pipeline.queue import Waiting
from core.pipeline.worker import Worker, worker_for

Deliver = Callable[[list[Waiting]], BatchDelivery]


class Pool:
    """Loop thread only.

    deliver    makes the delivery of a batch
    on_idle    called when an instance has become idle, and when the last one has broken
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, deliver: Deliver, on_idle: Callable[[], None]
    ):
        self.workers: list[Worker] = []
        self._loop = loop
        self._deliver = deliver
        self._on_idle = on_idle
        self._idle: deque[Worker] = deque()

    @property
    def has_idle(self) -> bool:
        return bool(self._idle)

    @property
    def broken(self) -> BaseException | None:
        """Why no instance is left, None while there is one."""
        errors = [worker.broken for worker in self.workers]
        return None if None in errors or not errors else errors[0]

    @property
    def ready(self) -> bool:
        """Whether an instance can serve."""
        return any(w.broken is None and w.instance.ready() for w in self.workers)

    def is_idle(self, worker: Worker) -> bool:
        return worker in self._idle

    def run(self, waiting: list[Waiting], worker: Worker | None = None) -> None:
        """Execute a batch on an idle worker: the given one, or the one that is idle for longest."""
        if worker is None:
            worker = self._idle.popleft()
        else:
            self._idle.remove(worker)
        worker.run(self._deliver(waiting))

    async def open(self, instances: list[ModelInstance]) -> None:
        """Open every instance; if one fails, close the others and raise its exception."""
        workers = [worker_for(instance, self._loop, self._became_idle) for instance in instances]
        results = await asyncio.gather(*(w.open() for w in workers), return_exceptions=True)
        self.workers = [w for w, r in zip(workers, results, strict=True) if r is None]
        if failure := next((r for r in results if r is not None), None):
            await self.close()
            raise failure
        self._idle.extend(self.workers)

    async def close(self) -> None:
        """Close the instances, each where it ran. A second call does nothing."""
        workers, self.workers = self.workers, []
        self._idle.clear()
        await asyncio.gather(*(worker.close() for worker in workers))

    def _became_idle(self, worker: Worker, delivery: BatchDelivery) -> None:
        if worker.broken is None and worker in self.workers:
            self._idle.append(worker)
        self._on_idle()
