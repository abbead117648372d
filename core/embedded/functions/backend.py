"""The backends of bound functions, one for each kind: plain, async, and those that yield.

find_backend ─► [FunctionBackend] ─► FunctionModel ─► an instance for each function.  They live in the
server that the functions are bound to, and in no other.
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
from core.embedded.asking import Desk, inside
from core.embedded.functions.binding import Bound
from core.embedded.functions.calling import Caller, Function
from core.embedded.functions.shelf import Shelf
from core.errors import CoreError, cancelled, internal
from core.request import InferenceRequest

logger = logging.getLogger("core")


class FunctionBackend(Backend):
    """One kind of functions of one server.

    shelf   where they are
    desk    of the server
    """

    def __init__(self, shelf: Shelf, desk: Desk, name: str, instance: type[ModelInstance]):
        super().__init__(model=FunctionModel, instance=instance)
        self.name = name
        self.shelf = shelf
        self.desk = desk


class FunctionModel(Model):
    """One bound function, or several that take turns as instances.

    bound   what it was made of
    """

    backend: FunctionBackend
    bound: Bound
    _turn: Iterator[int]

    def load(self) -> None:
        """Take what is bound now. Raises CoreError for a configuration from elsewhere."""
        found = self.backend.shelf.bound.get(self.name)
        if found is None:
            raise internal(f"no function is bound as '{self.name}' in this process")
        self.bound = found
        self._turn = itertools.count()

    def next_function(self) -> Function:
        """The function of the next instance. Any thread."""
        functions = self.bound.functions
        return functions[next(self._turn) % len(functions)]


class _Instance(ModelInstance):
    model: FunctionModel
    _function: Function
    _caller: Caller

    @property
    def placement(self) -> str:  # type: ignore[override]
        """As bind was told; the class cannot know it."""
        return self.model.bound.placement

    @property
    def memory(self) -> str:  # type: ignore[override]
        return self.model.bound.memory

    def open(self) -> None:
        self._function = self.model.next_function()
        self._caller = self.model.bound.caller

    def _call(self, arrays: Mapping[str, Any], requests: Sequence[InferenceRequest]) -> Any:
        inside.set(self.model.backend.desk)
        return self._caller.call(self._function, arrays, requests)

    def _failure(self, error: Exception) -> CoreError:
        """What the function raised, as its caller sees it; the log has it with the traceback."""
        if isinstance(error, CoreError):
            return error
        logger.error("the function of model '%s' failed", self.model.name, exc_info=error)
        failure = internal(f"model '{self.model.name}' failed: {type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure


class PlainInstance(_Instance):
    """Of a function that returns."""

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        try:
            result = self._call({name: batch[name] for name in batch}, batch.requests)
            return self._caller.outputs(result, batch.rows)
        except CoreError:
            raise
        except Exception as error:
            raise self._failure(error) from error


class AsyncInstance(_Instance):
    """Of a coroutine function. It runs on the server's loop, and ends when nobody waits for it."""

    async def execute(self, batch: Batch) -> Mapping[str, Any]:  # type: ignore[override]
        batch.on_cancel(_LastCancels(asyncio.current_task(), len(batch)))
        try:
            result = await self._call({name: batch[name] for name in batch}, batch.requests)
            return self._caller.outputs(result, batch.rows)
        except CoreError:
            raise
        except Exception as error:
            raise self._failure(error) from error


class StreamInstance(_Instance):
    """Of a generator function: each request is answered with what one generator yields."""

    def execute(self, batch: Batch) -> None:
        for i in range(len(batch)):
            try:
                self._answer(batch, i)
            except Exception as error:
                batch.fail(i, self._failure(error), failure=True)
            else:
                batch.finish(i)

    def _answer(self, batch: Batch, i: int) -> None:
        request = batch.requests[i]
        pace = Pace(request, self.loop)
        results = self._call(_inputs(batch, i, self.memory), [request])
        try:
            for result in results:
                if request.cancelled:
                    return
                tensors = self._caller.tensors(result, request.rows)
                batch.respond(i, tensors, final=False)
                pace.gave(sum(tensor.byte_size for tensor in tensors))
        finally:
            results.close()


class AsyncStreamInstance(_Instance):
    """Of an async generator function; the requests of a batch are answered side by side."""

    async def execute(self, batch: Batch) -> None:  # type: ignore[override]
        tasks = [asyncio.ensure_future(self._request(batch, i)) for i in range(len(batch))]
        for request, task in zip(batch.requests, tasks, strict=True):
            request.on_cancel(_LastCancels(task, 1))
        await asyncio.gather(*tasks)

    async def _request(self, batch: Batch, i: int) -> None:
        try:
            await self._answer(batch, i)
        except asyncio.CancelledError:
            batch.fail(i, cancelled(), failure=True)
        except Exception as error:
            batch.fail(i, self._failure(error), failure=True)
        else:
            batch.finish(i)

    async def _answer(self, batch: Batch, i: int) -> None:
        request = batch.requests[i]
        results = self._call(_inputs(batch, i, self.memory), [request])
        try:
            async for result in results:
                if request.cancelled:
                    return
                batch.respond(i, self._caller.tensors(result, request.rows), final=False)
                await batch.room(i)
        finally:
            await results.aclose()


class _LastCancels:
    """Cancels a task when the last of its requests is cancelled. Loop thread."""

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


_INSTANCES: Mapping[str, type[ModelInstance]] = {
    "function": PlainInstance,
    "function_async": AsyncInstance,
    "function_stream": StreamInstance,
    "function_async_stream": AsyncStreamInstance,
}
BACKENDS = frozenset(_INSTANCES)


def backends_of(shelf: Shelf, desk: Desk) -> dict[str, FunctionBackend]:
    """The backends of one server, by the name that configurations have."""
    return {
        name: FunctionBackend(shelf, desk, name, instance) for name, instance in _INSTANCES.items()
    }
