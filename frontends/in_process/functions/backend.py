"""The backends of bound functions, one for each kind: plain, async, generator, async generator.

find_backend ─► [FunctionBackend] ─► FunctionModel ─► an instance for each function. They belong to the server
that the functions are bound to.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.backend import Backend, Model, ModelInstance
from core.backlog import Pace
from core.batch import Batch
from core.errors import CoreError, cancelled, internal
from core.request import InferenceRequest
from frontends.in_process.functions.adapter import Function, FunctionAdapter
from frontends.in_process.functions.binding import BoundFunction
from frontends.in_process.functions.repository import FunctionRepository
from frontends.in_process.pending import Dispatcher, current_dispatcher

logger = logging.getLogger("core")


class FunctionBackend(Backend):
    """The backend for one kind of functions of one server.

    repository   holds the bound functions of the server
    dispatcher   passes requests of the functions to the server
    """

    def __init__(
        self,
        repository: FunctionRepository,
        dispatcher: Dispatcher,
        name: str,
        instance: type[ModelInstance],
    ):
        super().__init__(model=FunctionModel, instance=instance)
        self.name = name
        self.repository = repository
        self.dispatcher = dispatcher


class FunctionModel(Model):
    """The model of a bound function, or of a list of functions with one for each instance.

    bound   set by `load`
    """

    backend: FunctionBackend
    bound: BoundFunction
    _opened: Iterator[int]

    def load(self) -> None:
        """Take the function that is bound now. Raises CoreError if no function has the model's name."""
        found = self.backend.repository.functions.get(self.name)
        if found is None:
            raise internal(f"no function is bound as '{self.name}' in this process")
        self.bound = found
        self._opened = itertools.count()

    def next_function(self) -> Function:
        """Return the function for the next instance that opens. Functions are used in turn. Any thread."""
        functions = self.bound.functions
        return functions[next(self._opened) % len(functions)]


class _Instance(ModelInstance):
    model: FunctionModel
    _function: Function
    _adapter: FunctionAdapter

    @property
    def placement(self) -> str:  # type: ignore[override]
        return self.model.bound.placement

    @property
    def memory(self) -> str:  # type: ignore[override]
        return self.model.bound.memory

    def open(self) -> None:
        self._function = self.model.next_function()
        self._adapter = self.model.bound.adapter

    def _call(self, arrays: Mapping[str, Any], requests: Sequence[InferenceRequest]) -> Any:
        current_dispatcher.set(self.model.backend.dispatcher)
        return self._adapter.call(self._function, arrays, requests)

    def _failure(self, error: Exception) -> CoreError:
        """Return the error for the request: a CoreError unchanged, any other exception as INTERNAL.

        The traceback of an exception that is no CoreError is logged.
        """
        if isinstance(error, CoreError):
            return error
        logger.error("the function of model '%s' failed", self.model.name, exc_info=error)
        failure = internal(f"model '{self.model.name}' failed: {type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure


class PlainInstance(_Instance):
    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        try:
            result = self._call({name: batch[name] for name in batch}, batch.requests)
            return self._adapter.outputs(result, batch.rows)
        except CoreError:
            raise
        except Exception as error:
            raise self._failure(error) from error


class AsyncInstance(_Instance):
    """An instance of a coroutine function.

    It runs on the server's loop, and is cancelled when all requests of its batch are cancelled.
    """

    async def execute(self, batch: Batch) -> Mapping[str, Any]:  # type: ignore[override]
        batch.on_cancel(_TaskCanceller(asyncio.current_task(), len(batch)))
        try:
            result = await self._call({name: batch[name] for name in batch}, batch.requests)
            return self._adapter.outputs(result, batch.rows)
        except CoreError:
            raise
        except Exception as error:
            raise self._failure(error) from error


class StreamInstance(_Instance):
    """An instance of a generator function: one generator yields the responses of one request."""

    def execute(self, batch: Batch) -> None:
        for i in range(len(batch)):
            try:
                self._respond(batch, i)
            except Exception as error:
                batch.fail(i, self._failure(error), failure=True)
            else:
                batch.finish(i)

    def _respond(self, batch: Batch, i: int) -> None:
        request = batch.requests[i]
        pace = Pace(request, self.loop)
        results = self._call(_inputs(batch, i, self.memory), [request])
        try:
            for result in results:
                if request.cancelled:
                    return
                tensors = self._adapter.tensors(result, request.rows)
                batch.respond(i, tensors, final=False)
                pace.gave(sum(tensor.byte_size for tensor in tensors))
        finally:
            results.close()


class AsyncStreamInstance(_Instance):
    """An instance of an async generator function; the requests of a batch run concurrently."""

    async def execute(self, batch: Batch) -> None:  # type: ignore[override]
        tasks = [asyncio.ensure_future(self._request(batch, i)) for i in range(len(batch))]
        for request, task in zip(batch.requests, tasks, strict=True):
            request.on_cancel(_TaskCanceller(task, 1))
        await asyncio.gather(*tasks)

    async def _request(self, batch: Batch, i: int) -> None:
        try:
            await self._respond(batch, i)
        except asyncio.CancelledError:
            batch.fail(i, cancelled(), failure=True)
        except Exception as error:
            batch.fail(i, self._failure(error), failure=True)
        else:
            batch.finish(i)

    async def _respond(self, batch: Batch, i: int) -> None:
        request = batch.requests[i]
        results = self._call(_inputs(batch, i, self.memory), [request])
        try:
            async for result in results:
                if request.cancelled:
                    return
                batch.respond(i, self._adapter.tensors(result, request.rows), final=False)
                await batch.room(i)
        finally:
            await results.aclose()


class _TaskCanceller:
    """Cancels a task when all its requests are cancelled: each cancellation calls it once. Loop thread.

    requests   number of the requests
    """

    def __init__(self, task: asyncio.Task[Any] | None, requests: int):
        self._task = task
        self._left = requests

    def __call__(self) -> None:
        self._left -= 1
        if not self._left and self._task is not None:
            self._task.cancel()


def _inputs(batch: Batch, i: int, memory: str) -> dict[str, Any]:
    inputs = batch.requests[i].inputs
    if memory == "device":
        return {name: tensor.value for name, tensor in inputs.items()}
    return {name: tensor.array for name, tensor in inputs.items()}


def backends_of(
    repository: FunctionRepository, dispatcher: Dispatcher
) -> dict[str, FunctionBackend]:
    instances: dict[str, type[ModelInstance]] = {
        "function": PlainInstance,
        "function_async": AsyncInstance,
        "function_stream": StreamInstance,
        "function_async_stream": AsyncStreamInstance,
    }
    return {
        name: FunctionBackend(repository, dispatcher, name, instance)
        for name, instance in instances.items()
    }
