"""Where an instance runs: on a thread of its own, or on the loop.

batcher ─► [Worker] ─► the backend's execute ─► delivery.  open, execute and close of one instance all
happen in one place, so a framework that ties its state to a thread is content.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from core.backend import ModelInstance, implements
from core.backlog import Pace
from core.batch import Batch
from core.device_batch import DeviceBatch
from core.errors import Fatal, cancelled, internal
from core.native.relay import Relay
from core.pipeline.answers.delivery import BatchDelivery, Held
from core.pipeline.instances.groups import Seat

logger = logging.getLogger("core")


class Owner:
    """Who gives batches to workers."""

    def became_idle(self, worker: Worker, delivery: BatchDelivery) -> None:
        """An execution is over. Loop thread."""
        raise NotImplementedError


class Worker:
    """One opened instance. `run` is only called while the worker is idle. Loop thread.

    seat    what its instance was opened for; written by the pool
    broken  why it left service, None while it serves
    leaves  it closes as soon as nothing is left that only it can do
    held    what it has taken and not yet answered
    on_device   whether its instance takes arrays on devices; written by the pool once it is open
    """

    def __init__(self, instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: Owner):
        self.instance = instance
        instance.loop = loop
        self.broken: BaseException | None = None
        self.seat: Seat = None  # type: ignore[assignment]  # until the pool has written it
        self.leaves = False
        self.held = Held()
        self.streams = implements(instance, ModelInstance, "stream")
        self.on_device = False
        self._execute: Callable[[Batch], Any] = instance.execute  # until it is open
        self._breaks_off = implements(instance, ModelInstance, "cancelled")
        self._loop = loop
        self._owner = owner

    async def open(self) -> None:
        """Open the instance; its exception is the load's."""
        raise NotImplementedError

    def run(self, delivery: BatchDelivery) -> None:
        """Start the execution of a batch."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the instance; an exception is logged, since nobody can act on it."""
        raise NotImplementedError

    def execute(self, delivery: BatchDelivery) -> BaseException | None:
        """Run one batch where we are; the error that it raised, if any."""
        if self.on_device:
            on_device(delivery, self.instance)
        batch = delivery.batch
        batch.start_ns = delivery.terms.clock.now_ns()
        outputs: Mapping[str, Any] | None = None
        error: BaseException | None = None
        try:
            if self.streams:
                _stream(self.instance, batch, self._loop)
            else:
                outputs = self._execute(batch)
        except BaseException as raised:
            error = contained(raised)
        delivery.executed(outputs, error)
        return error

    def _ended(self, delivery: BatchDelivery, error: BaseException | None) -> None:
        """Loop thread: the execution is over."""
        if error is not None and isinstance(error, Fatal):
            self.broken = error
        delivery.release()
        self._owner.became_idle(self, delivery)

    def _close_failed(self) -> None:
        logger.exception("closing instance '%s' failed", self.instance.name)


class ThreadWorker(Worker):
    """The instance has a thread of its own."""

    def __init__(self, instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: Owner):
        super().__init__(instance, loop, owner)
        self._relay = Relay(loop)
        self._thread = threading.Thread(target=self._serve, name=instance.name, daemon=True)

    async def open(self) -> None:
        self._thread.start()
        try:
            await self._call(self._open)
        except BaseException:
            self._relay.put(None)
            self._relay.close()
            raise

    def run(self, delivery: BatchDelivery) -> None:
        if self._breaks_off:
            delivery.batch.on_cancel(_LastCancels(self.instance, delivery))
        self._relay.put(delivery)

    async def close(self) -> None:
        try:
            await self._call(self.instance.close)
        except Exception:
            self._close_failed()
        self._relay.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        self._relay.close()

    async def _call(self, function: Callable[[], None]) -> None:
        future: asyncio.Future[None] = self._loop.create_future()

        self._relay.put(_Errand(function, future, self._loop))
        await future

    def _open(self) -> None:
        self.instance.host_policy.bind()
        self._execute = open_instance(self.instance)

    def _serve(self) -> None:
        while (work := self._relay.take()) is not None:
            if isinstance(work, BatchDelivery):
                error = self.execute(work)
                self._relay.tell(self._ended, work, error)
            else:
                work()
            work = error = None  # they hold their batch, and the next may be long in coming


class InlineWorker(Worker):
    """The instance executes on the loop: for work shorter than a hand-over to a thread."""

    async def open(self) -> None:
        await self._call(self._open)

    def _open(self) -> None:
        self._execute = open_instance(self.instance)

    def run(self, delivery: BatchDelivery) -> None:
        self._ended(delivery, self.execute(delivery))

    async def close(self) -> None:
        try:
            await self._call(self.instance.close)
        except Exception:
            self._close_failed()

    async def _call(self, function: Callable[[], None]) -> None:
        # A thread for that alone: open may take minutes and wait for other models that open, so no
        # pool is large enough, and the loop's is needed by those that serve.
        future: asyncio.Future[None] = self._loop.create_future()
        errand = _Errand(function, future, self._loop)
        threading.Thread(target=errand, name=self.instance.name, daemon=True).start()
        await future


class LoopWorker(InlineWorker):
    """The instance's execute is a coroutine function: it runs as a task of the loop."""

    def __init__(self, instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: Owner):
        super().__init__(instance, loop, owner)
        self._task: asyncio.Task[None] | None = None

    def run(self, delivery: BatchDelivery) -> None:
        self._task = self._loop.create_task(self._answer(delivery))

    async def _answer(self, delivery: BatchDelivery) -> None:
        if self.on_device:
            on_device(delivery, self.instance)
        batch = delivery.batch
        batch.start_ns = delivery.terms.clock.now_ns()
        error: BaseException | None = None
        outputs: Any = None
        try:
            outputs = await self.instance.execute(batch)  # type: ignore[misc]
        except asyncio.CancelledError:
            delivery.executed(None, cancelled("the server has ended the execution"))
            self._ended(delivery, None)
            raise
        except BaseException as raised:
            error = contained(raised)
        delivery.executed(outputs, error)
        self._ended(delivery, error)


class _LastCancels:
    """Called for each request of a batch that is cancelled; the last one tells the instance. Loop thread.

    A request forgets it with its last answer, so whoever is answered is never counted.
    """

    def __init__(self, instance: ModelInstance, delivery: BatchDelivery):
        self._instance = instance
        self._delivery = delivery
        self._waiting = len(delivery.batch)

    def __call__(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._instance.cancelled(self._delivery.batch)


class _Errand:
    """A call on the instance's thread, whose end a future tells.

    An object and not a closure: a compiled coroutine and a function in it hold each other.
    """

    def __init__(
        self,
        function: Callable[[], None],
        future: asyncio.Future[None],
        loop: asyncio.AbstractEventLoop,
    ):
        self._function = function
        self._future = future
        self._loop = loop

    def __call__(self) -> None:
        error: Exception | None = None
        try:
            self._function()
        except BaseException as raised:
            error = contained(raised)
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            self._loop.call_soon_threadsafe(self._settle, error)

    def _settle(self, error: Exception | None) -> None:
        if self._future.cancelled():
            return
        if error is None:
            self._future.set_result(None)
        else:
            self._future.set_exception(error)


def on_device(delivery: BatchDelivery, instance: ModelInstance) -> None:
    """The instance gets inputs on devices as they are."""
    delivery.batch = DeviceBatch(delivery.batch, instance)


def open_instance(instance: ModelInstance) -> Callable[[Batch], Any]:
    """Open an instance, and return what executes its batches: its method, or the native code of its capsule.

    A capsule that this core cannot use is the load's error, and the instance is closed again.
    """
    instance.open()
    if instance.native is None:
        return instance.execute
    from core.native.adoption import adopt  # few servers have native backends

    try:
        # The class may have an `execute` too, for where there is no native code.
        return adopt(instance)
    except BaseException:
        instance.close()
        raise


def contained(error: BaseException) -> Exception:
    """What a model raised, as an error of the model alone.

    SystemExit and its like would end the loop, or the thread without a word.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return internal(f"{type(error).__name__}: {error}")


def _stream(instance: ModelInstance, batch: Batch, loop: asyncio.AbstractEventLoop) -> None:
    """Answer each request with what the instance's `stream(request)` yields, as fast as it is read."""
    for i, request in enumerate(batch.requests):
        pace = Pace(request, loop)
        for outputs in instance.stream(request):
            batch.respond(i, outputs, final=False)
            if request.cancelled:
                break
            pace.gave(_size(outputs))
        batch.finish(i)


def _size(outputs: Mapping[str, Any] | list[Any]) -> int:
    """Bytes of what a stream has yielded, where that is easily known."""
    found = outputs.values() if isinstance(outputs, Mapping) else outputs
    return sum(getattr(each, "nbytes", 0) for each in found)
