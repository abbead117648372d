"""InferenceResponse: one answer. Reply: the way home of a request.

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

Item = "InferenceResponse | CoreError | None"
Listening = Callable[["InferenceResponse | CoreError | None", bool], None]


@cython.freelist(32)
@cython.cclass
class InferenceResponse:
    """One answer of a model version.

    outputs   in the order of the model's configuration, only those that the request wants
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
        """Custom parameters; made when somebody asks, since most responses have none."""
        if self._parameters is None:
            self._parameters = {}
        return self._parameters

    @property
    def has_parameters(self) -> bool:
        """Whether there are any."""
        return bool(self._parameters)

    def output(self, name: str) -> Tensor:
        """The output `name`; KeyError if the response has none."""
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
    """InferenceResponse(…) for who makes one for every request."""
    response: InferenceResponse = InferenceResponse.__new__(InferenceResponse)
    response.model_name = model_name
    response.model_version = model_version
    response.id = id
    response.outputs = outputs
    response._parameters = parameters
    return response


def not_single(count: int) -> CoreError:
    """The error of a model that gave `count` answers where one is wanted."""
    return internal(f"expected a single response, got {count}")


def new_reply(request: InferenceRequest) -> Reply:
    """Reply(request) for who makes one for every request."""
    reply: Reply = Reply.__new__(Reply)
    reply.request = request
    reply._first = reply._more = reply._listener = None
    reply._waits = reply._first_is_final = reply._heard = reply._finished = False
    return reply


class ReplyListener:
    """Who is told of each item of a Reply. For compiled listeners: a call that makes no object."""

    def receive(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        """One item; see Reply."""
        raise NotImplementedError

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        self.receive(item, final)


@cython.freelist(32)
@cython.cclass
class Reply:
    """The answers to one request on their way back. Loop thread only.

    `await reply` gives the one answer of an ordinary model and raises its error.
    `async for response in reply` gives each answer of a decoupled one; an error that is a response
    is yielded as a CoreError, since more may follow.
    `listen` is for who needs no coroutine: one callback for each item.

    Each item is (InferenceResponse | CoreError | None, final). None with final means: nothing more.
    """

    def __init__(self, request: InferenceRequest):
        self.request = request
        # Answers that came before anybody listened: the first, and others behind it.
        self._first: InferenceResponse | CoreError | None = None
        self._waits = False  # there is a first
        self._first_is_final = False
        self._more: deque[tuple[InferenceResponse | CoreError | None, bool]] | None = None
        self._listener: Listening | None = None
        self._heard = False  # somebody has listened
        self._finished = False

    @property
    def finished(self) -> bool:
        """Whether the final item has been sent."""
        return self._finished

    def send(self, item: InferenceResponse | CoreError | None, final: bool = True) -> None:
        """Pass on an answer, an error, or None when only the end is to be told.

        After the final item every other is dropped: the first end wins (a cancelled request whose
        model answers after all).
        """
        if self._finished:
            return
        self._finished = final
        if final:
            self.request.finish()
        listener = self._listener
        if listener is not None:
            if final:
                self._listener = None  # what it holds can go
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
        """Send `error` as the end."""
        self.send(error, True)

    def listen(self, listener: Listening) -> None:
        """Call `listener(item, final)` for each item, those that wait first. Only one listener."""
        if self._heard:
            raise RuntimeError("a Reply has one listener")
        # Compiled callers may hold the only reference in an attribute that the listener clears.
        reply = self
        reply._heard = True
        if reply._waits:
            item, final = reply._first, reply._first_is_final
            reply._first = None
            _notify(listener, item, final)
            # `_waits` stays until here: what came in the meantime waits behind the first.
            while reply._more:
                item, final = reply._more.popleft()
                _notify(listener, item, final)
            reply._waits = False
        if not reply._finished:
            reply._listener = listener

    def cancel(self) -> None:
        """Nobody waits any more; the request leaves the queue or the model is told."""
        self.request.cancel()

    def end(self, error: CoreError) -> None:
        """Give `error` as the last answer to whoever iterates over the answers, and cancel the request.

        The iterator gives the answers before it that have arrived. No effect if nobody iterates.
        """
        if isinstance(self._listener, _Answers):
            self._listener.end(error)

    def __await__(self) -> Generator[Any, None, InferenceResponse]:
        return self._only().__await__()

    async def _only(self) -> InferenceResponse:
        future: asyncio.Future[InferenceResponse] = asyncio.get_running_loop().create_future()
        self.listen(_OnlyAnswer(future))
        try:
            return await future
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def __aiter__(self) -> AsyncGenerator[InferenceResponse | CoreError, None]:
        answers = _Answers(self.request)
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


# Listeners are objects and not closures: a compiled coroutine and a function in it hold each other, and
# the request with them, until the garbage collector comes.


class _OnlyAnswer:
    """Gives `future` the one answer, or the error."""

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


class _Answers:
    """Those that have arrived and were not taken, as many as Backlog lets them be."""

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
        """The first."""
        item, final = self.items.popleft()
        self._backlog.take(_size(item))
        return item, final

    def end(self, error: CoreError) -> None:
        """Let `error` be the last one, and cancel the request."""
        self._closed = True
        self.items.append((error, True))
        self.arrived.set()
        self._backlog.close()
        self._request.cancel()

    def close(self) -> None:
        """Nobody takes any more."""
        self._closed = True
        self.items.clear()
        self._backlog.close()

    def _give_up(self, error: CoreError) -> None:
        self.close()
        self.items.append((error, True))
        self._request.cancel()


def _size(item: InferenceResponse | CoreError | None) -> int:
    """Bytes of an answer's tensors."""
    size = 0
    if isinstance(item, InferenceResponse):
        for tensor in item.outputs:
            size += tensor.byte_size
    return size
