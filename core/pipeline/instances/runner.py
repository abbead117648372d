"""InstanceRunner: calls one instance, on a thread of its own or on the event loop.

batcher ─► [InstanceRunner] ─► the backend's execute ─► delivery.  ThreadRunner opens, executes and closes an
instance on one thread, since some frameworks bind their state to a thread.
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
from core.devices.batch import DeviceBatch
from core.errors import Fatal, call_author, cancelled, internal
from core.future_setter import FutureSetter
from core.native.thread_queue import ThreadQueue
from core.pipeline.answers.context import OutstandingBatches
from core.pipeline.answers.delivery import BatchDelivery
from core.pipeline.instances.specs import InstanceSpec

logger = logging.getLogger("core")


class RunnerOwner:
    """Interface of what gives batches to runners."""

    def became_idle(self, runner: InstanceRunner, delivery: BatchDelivery) -> None:
        """Take back a runner that can execute again, or is broken. Called on the event loop."""
        raise NotImplementedError


class InstanceRunner:
    """Base class: opens, executes and closes one instance.

    Not thread-safe: call from the event loop only, and call `run` only while the runner is idle.

    spec          what the instance was opened for; set by the pool
    broken        why the instance has left service; None while it serves
    leaves        whether the instance closes once its sequences have ended
    outstanding   batches that have not ended
    on_device     whether the instance accepts arrays in the memory of a device; set by the pool after `open`
    """

    def __init__(
        self, instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: RunnerOwner
    ):
        self.instance = instance
        instance.loop = loop
        self.broken: BaseException | None = None
        self.spec: InstanceSpec = None  # type: ignore[assignment]  # set by the pool
        self.leaves = False
        self.outstanding = OutstandingBatches(instance.name)
        self.streams = implements(instance, ModelInstance, "stream")
        self.on_device = False
        self._execute: Callable[[Batch], Any] = instance.execute  # replaced by `open`
        self._cancellable = implements(instance, ModelInstance, "cancelled")
        self._loop = loop
        self._owner = owner

    async def open(self) -> None:
        """Open the instance. Raise what `open_instance` raises."""
        raise NotImplementedError

    def run(self, delivery: BatchDelivery) -> None:
        """Start the execution of a batch."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the instance. Log an exception that its `close` raises."""
        raise NotImplementedError

    def execute(self, delivery: BatchDelivery) -> BaseException | None:
        """Execute and answer a batch on the current thread. Return what the instance raised, or None."""
        if self.on_device:
            on_device(delivery, self.instance)
        batch = delivery.batch
        batch.start_ns = delivery.context.clock.now_ns()
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
        """On the event loop: note a Fatal error in `broken`, release the delivery, tell the owner."""
        if error is not None and isinstance(error, Fatal):
            self.broken = error
        delivery.release()
        self._owner.became_idle(self, delivery)

    def _close_failed(self) -> None:
        logger.exception("closing instance '%s' failed", self.instance.name)


class ThreadRunner(InstanceRunner):
    """Runner with one thread for its instance."""

    def __init__(
        self, instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: RunnerOwner
    ):
        super().__init__(instance, loop, owner)
        self._queue = ThreadQueue(loop)
        self._thread = threading.Thread(target=self._serve, name=instance.name, daemon=True)

    async def open(self) -> None:
        try:
            await self._loop.run_in_executor(None, self._thread.start)  # waits for the thread
            await self._call(self._open)
        except BaseException:
            self._queue.put(None)
            self._queue.close()
            raise

    def run(self, delivery: BatchDelivery) -> None:
        if self._cancellable:
            delivery.batch.on_cancel(_CancelBatch(self.instance, delivery))
        self._queue.put(delivery)

    async def close(self) -> None:
        try:
            await self._call(self.instance.close)
        except Exception:
            self._close_failed()
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        self._queue.close()

    async def _call(self, function: Callable[[], None]) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.put(_ThreadCall(function, future, self._loop))
        await future

    def _open(self) -> None:
        self.instance.host_policy.bind()
        self._execute = open_instance(self.instance)

    def _serve(self) -> None:
        while (work := self._queue.take()) is not None:
            if isinstance(work, BatchDelivery):
                error = self.execute(work)
                self._queue.call_on_loop(self._ended, work, error)
            else:
                work()
            work = error = None  # free the batch before the wait for the next one


class InlineRunner(InstanceRunner):
    """Runner that executes on the event loop: for work shorter than a thread switch. `open` uses a thread."""

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
        # A new thread: open may take minutes and wait for other models that open. Any pool could block.
        future: asyncio.Future[None] = self._loop.create_future()
        call = _ThreadCall(function, future, self._loop)
        thread = threading.Thread(target=call, name=self.instance.name, daemon=True)
        await self._loop.run_in_executor(None, thread.start)
        await future


class LoopRunner(InlineRunner):
    """Runner for an instance whose execute is a coroutine function: a task of the event loop."""

    def __init__(
        self, instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: RunnerOwner
    ):
        super().__init__(instance, loop, owner)
        self._task: asyncio.Task[None] | None = None

    def run(self, delivery: BatchDelivery) -> None:
        self._task = self._loop.create_task(self._answer(delivery))

    async def _answer(self, delivery: BatchDelivery) -> None:
        if self.on_device:
            on_device(delivery, self.instance)
        batch = delivery.batch
        batch.start_ns = delivery.context.clock.now_ns()
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


class _CancelBatch:
    """Cancel listener of the requests of one batch: calls the instance once all of them are cancelled.

    A request drops its listeners with its final item, so an answered request never counts as cancelled.
    """

    def __init__(self, instance: ModelInstance, delivery: BatchDelivery):
        self._instance = instance
        self._delivery = delivery
        self._waiting = len(delivery.batch)

    def __call__(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._instance.cancelled(self._delivery.batch)


class _ThreadCall:
    """A call on another thread that sets a future of the event loop.

    An object and not a closure: a compiled coroutine and a function in it refer to each other.
    """

    def __init__(
        self,
        function: Callable[[], None],
        future: asyncio.Future[None],
        loop: asyncio.AbstractEventLoop,
    ):
        self._function = function
        self._set = FutureSetter(future)
        self._loop = loop

    def __call__(self) -> None:
        error: Exception | None = None
        try:
            self._function()
        except BaseException as raised:
            error = contained(raised)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for the future
            self._loop.call_soon_threadsafe(self._set, error)


def on_device(delivery: BatchDelivery, instance: ModelInstance) -> None:
    """Make the batch a DeviceBatch, which gives the instance inputs in the memory of a device."""
    delivery.batch = DeviceBatch(delivery.batch, instance)


def open_instance(instance: ModelInstance) -> Callable[[Batch], Any]:
    """Open an instance, and return its `execute`, or the native code of its capsule.

    Raise what `call_author` raises. If core cannot use the capsule, close the instance and raise CoreError.
    """
    backend = getattr(getattr(instance, "model", None), "backend", None)
    call_author(getattr(backend, "name", ""), "open", instance.open)
    if instance.native is None:
        return instance.execute
    from core.native.callbacks import new_executor  # late: few servers have native backends

    try:
        # The class may also define `execute`, for use without native code.
        return new_executor(instance)
    except BaseException:
        instance.close()
        raise


def contained(error: BaseException) -> Exception:
    """Return `error`, or a CoreError(INTERNAL) in place of StopIteration and of what is no Exception.

    SystemExit and similar would end the event loop or the thread.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return internal(f"{type(error).__name__}: {error}")


def _stream(instance: ModelInstance, batch: Batch, loop: asyncio.AbstractEventLoop) -> None:
    """Answer each request with what `stream(request)` yields, as fast as the client reads."""
    for i, request in enumerate(batch.requests):
        pace = Pace(request, loop)
        for outputs in instance.stream(request):
            batch.respond(i, outputs, final=False)
            if request.cancelled:
                break
            pace.gave(_size(outputs))
        batch.finish(i)


def _size(outputs: Mapping[str, Any] | list[Any]) -> int:
    """Return the size in bytes of what a stream has yielded; objects without `nbytes` count 0."""
    found = outputs.values() if isinstance(outputs, Mapping) else outputs
    return sum(getattr(each, "nbytes", 0) for each in found)
