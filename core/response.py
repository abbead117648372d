"""InferenceResponse: one response of a model. Reply: the channel on which a request gets its responses.

… execute ─► split ─► [InferenceResponse] ─► Reply ─► frontend
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import cython

from core.backlog import Backlog
from core.errors import CoreError, internal
from core.request import InferenceRequest, Parameter
from core.tensor import Tensor

Listening = Callable[["InferenceResponse | CoreError | None", bool], None]


@cython.freelist(32)
@cython.cclass
class InferenceResponse:
    """One response of a model version.

    outputs   those that the client has requested, in the order in which the model gave them
    """

    def __init__(
        self,
        model_name: str,
        model_version: int,
        outputs: list[Tensor],
        *,
        id: str = "",
        parameters: dict[str, Parameter] | None = None,
    ):
        self.model_name = model_name
        self.model_version = model_version
        self.id = id
        self.outputs = outputs
        self._parameters = parameters

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Custom parameters. The dict is created on first use, since most responses have none."""
        if self._parameters is None:
            self._parameters = {}
        return self._parameters

    @property
    def has_parameters(self) -> bool:
        """Return whether there are custom parameters."""
        return bool(self._parameters)

    def output(self, name: str) -> Tensor:
        """Return the output `name`. Raises KeyError if the response lacks it."""
        for tensor in self.outputs:
            if tensor.name == name:
                return tensor
        raise KeyError(name)

    def __repr__(self) -> str:
        return f"InferenceResponse({self.model_name!r} {self.model_version}, {self.outputs})"


def new_response(
    model_name: str,
    model_version: int,
    outputs: list[Tensor],
    id: str,
    parameters: dict[str, Parameter] | None,
) -> InferenceResponse:
    """Return InferenceResponse(…) without a call of its constructor, which is slower."""
    response: InferenceResponse = InferenceResponse.__new__(InferenceResponse)
    response.model_name = model_name
    response.model_version = model_version
    response.id = id
    response.outputs = outputs
    response._parameters = parameters
    return response


def not_single(count: int) -> CoreError:
    """Return the error for a model that has sent `count` responses instead of one."""
    return internal(f"expected a single response, got {count}")


def new_reply(request: InferenceRequest) -> Reply:
    """Return Reply(request) without a call of its constructor, which is slower."""
    reply: Reply = Reply.__new__(Reply)
    reply.request = request
    reply._first = reply._more = reply._listener = None
    reply._waits = reply._first_is_final = reply._heard = reply._finished = False
    return reply


class ReplyListener:
    """Base class of compiled listeners. A Reply calls `receive` in C, so it creates no argument tuple."""

    def receive(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        """Take one item of a Reply. Every subclass implements it."""
        raise NotImplementedError

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        self.receive(item, final)


@cython.freelist(32)
@cython.cclass
class Reply:
    """Channel for the responses to one request. Not thread-safe: call from the event loop only.

    `await reply` returns the only response of an ordinary model, or raises its error.
    `async for response in reply` yields each response of a decoupled model; it yields an error as a
    CoreError, since more responses may follow. Leaving either before the end cancels the request.
    `listen` calls a function for each item, without a coroutine.

    An item is (InferenceResponse | CoreError | None, final). None with final ends the responses.
    """

    def __init__(self, request: InferenceRequest):
        self.request = request
        # Items that were sent before `listen`: the first, and the others.
        self._first: InferenceResponse | CoreError | None = None
        self._waits = False  # whether there is a first
        self._first_is_final = False
        self._more: deque[tuple[InferenceResponse | CoreError | None, bool]] | None = None
        self._listener: Listening | None = None
        self._heard = False  # whether `listen` was called
        self._finished = False

    @property
    def finished(self) -> bool:
        """Return whether the final item has been sent."""
        return self._finished

    def send(self, item: InferenceResponse | CoreError | None, final: bool = True) -> None:
        """Send a response, an error, or None to end the responses. A final item finishes the request.

        Items after the final one are dropped, for example responses of a model to a cancelled request.
        """
        if self._finished:
            return
        self._finished = final
        if final:
            self.request.finish()
        listener = self._listener
        if listener is not None:
            if final:
                self._listener = None  # free what it references
            _notify(listener, item, final)
        elif not self._waits:
            self._first = item
            self._first_is_final = final
            self._waits = True
        else:
            if self._more is None:
                self._more = deque()
            self._more.append((item, final))

    def fail(self, error: CoreError) -> None:
        """Send `error` as the final item."""
        self.send(error, True)

    def listen(self, listener: Listening) -> None:
        """Call `listener(item, final)` for each item, waiting ones first. RuntimeError if called twice."""
        if self._heard:
            raise RuntimeError("a Reply has one listener")
        # A compiled caller's only reference may be an attribute that the listener clears.
        reply = self
        reply._heard = True
        if reply._waits:
            item, final = reply._first, reply._first_is_final
            reply._first = None
            _notify(listener, item, final)
            # `_waits` is True until here, so items that listeners cause wait behind the first.
            while reply._more:
                item, final = reply._more.popleft()
                _notify(listener, item, final)
            reply._waits = False
        if not reply._finished:
            reply._listener = listener

    def cancel(self) -> None:
        """Cancel the request: remove it from its queue, or notify the running model."""
        self.request.cancel()

    def end(self, error: CoreError) -> None:
        """Cancel the request, and let the iterator over the responses yield `error` last.

        It first yields what has arrived. No effect without an iterator, or after the final item.
        """
        if isinstance(self._listener, _Responses):
            self._listener.end(error)

    def __await__(self) -> Generator[Any, None, InferenceResponse]:
        return self._only().__await__()

    async def _only(self) -> InferenceResponse:
        future: asyncio.Future[InferenceResponse] = asyncio.get_running_loop().create_future()
        self.listen(_OnlyResponse(future))
        try:
            return await future
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def __aiter__(self) -> AsyncGenerator[InferenceResponse | CoreError, None]:
        answers = _Responses(self.request)
        self.listen(answers)
        final = False
        try:
            while not final:
                if not answers.items:
                    answers.arrived.clear()
                    await answers.arrived.wait()
                item, final = answers.take()
                if item is not None:
                    yield item
        finally:
            answers.close()
            if not final:
                self.cancel()


def _notify(listener: Listening, item: InferenceResponse | CoreError | None, final: bool) -> None:
    if isinstance(listener, ReplyListener):
        compiled = listener
        compiled.receive(item, final)
    else:
        listener(item, final)


# Listeners are objects and not closures: a compiled coroutine and a function in it refer to each other, so
# only the garbage collector would free them and the request.


class _OnlyResponse:
    """Listener that sets a future to the only response; to an error if one comes or the count is not one."""

    def __init__(self, future: asyncio.Future[InferenceResponse]):
        self._future = future
        self._answer: InferenceResponse | None = None
        self._count = 0

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        future = self._future
        if future.done():
            return
        if isinstance(item, CoreError):
            future.set_exception(item)
            return
        if item is not None:
            self._answer = item
            self._count += 1
        if final and self._answer is not None and self._count == 1:
            future.set_result(self._answer)
        elif final:
            future.set_exception(not_single(self._count))


class _Responses:
    """Listener that keeps items for an iterator. If the Backlog gives up, its error replaces them."""

    def __init__(self, request: InferenceRequest) -> None:
        self.arrived = asyncio.Event()
        self.items: deque[tuple[InferenceResponse | CoreError | None, bool]] = deque()
        self._request = request
        self._backlog = Backlog(self._give_up)
        self._backlog.enter(request)
        self._closed = False

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        if self._closed:
            return
        self.items.append((item, final))
        self.arrived.set()
        if final:
            self._backlog.leave(self._request)
        self._backlog.add(_size(item))

    def take(self) -> tuple[InferenceResponse | CoreError | None, bool]:
        """Remove and return the first item."""
        item, final = self.items.popleft()
        self._backlog.take(_size(item))
        return item, final

    def end(self, error: CoreError) -> None:
        """Add `error` as the last item, and cancel the request."""
        self._closed = True
        self.items.append((error, True))
        self.arrived.set()
        self._backlog.close()
        self._request.cancel()

    def close(self) -> None:
        """Drop all items and take no more; end a pause of the request."""
        self._closed = True
        self.items.clear()
        self._backlog.close()

    def _give_up(self, error: CoreError) -> None:
        self.close()
        self.items.append((error, True))
        self._request.cancel()


def _size(item: InferenceResponse | CoreError | None) -> int:
    """Return the number of bytes of a response's tensors; 0 for an error and for None."""
    size = 0
    if isinstance(item, InferenceResponse):
        for tensor in item.outputs:
            size += tensor.byte_size
    return size
