"""Generation: the replies to all requests of one call, as one stream of events or one whole result.

Reply, Reply, … ─► Piece ─► Choice ─► events ─► [Generation] ─► parts of the HTTP response
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from core.backlog import Backlog
from core.costs import forget_cost
from core.errors import CoreError, internal, unavailable
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from frontend_openai.errors import encodable_error
from frontend_openai.pieces import Piece, PieceReader
from frontends.http.native.event_stream import EventQueue, PartWriter, TextEvents

MOST_TEXT = 64 * 2**20  # characters of a whole result; a stream has no bound


class Choice(Protocol):
    """Takes the pieces of one text.

    around   what the event of a piece with nothing but a text has before and behind the text; None if such
             pieces must go to `take`
    """

    @property
    def around(self) -> tuple[bytes, bytes] | None: ...

    def take(self, piece: Piece) -> bytes:
        """Take a piece; return the events for the client, b"" for none."""

    def end(self) -> bytes:
        """Take the end of the text; return the last events."""


class Generation:
    """All choices of one call. Not thread-safe: call from the event loop only.

    As a stream (frontends.http.message.Parts), each part has all events that have come since the one before.

    choices   one for each request
    output    name of the model's output with the text
    tail      returns the events behind those of all choices
    error     returns the event for an error, which ends the stream
    """

    def __init__(
        self,
        choices: Sequence[Choice],
        output: str,
        tail: Callable[[], bytes],
        error: Callable[[CoreError], bytes],
    ):
        self._choices = choices
        self._output = output
        self._readers = [PieceReader(output) for _ in choices]
        self._tail = tail
        self._error_event = error
        self._running: dict[int, InferenceRequest] = {}
        self._left = len(choices)
        self._backlog = Backlog(self._fail)
        self._events = EventQueue(self._backlog)
        self._stream = False
        self._size = 0  # characters so far
        self._begun = False  # whether the status of the response is decided
        self._error: CoreError | None = None
        self._over = False

    def start(
        self, submit: Callable[[int, InferenceRequest], Reply], requests: Sequence[InferenceRequest]
    ) -> Reply:
        """Submit one request for each choice; return the first reply. Raises the CoreError of a refusal.

        submit   takes the number of a request and the request
        """
        first = None
        try:
            for number, request in enumerate(requests):
                self._running[number] = request
                self._backlog.enter(request)
                reply = submit(number, request)
                first = first or reply
                listener = _Listener(self, number, self._events)
                reply.listen(listener.texts)
                if self._over:  # it has failed at once
                    break
        except BaseException:
            self._close()
            raise
        assert first is not None
        return first

    async def first(self) -> None:
        """Wait for the first events; the response then begins. Raises CoreError if an error comes before."""
        self._stream = True
        await self._wait()
        if self._error is not None:
            raise self._error
        self._begun = True

    async def whole(self) -> None:
        """Wait until every text has ended. Raises the CoreError of the first that failed."""
        while not self._over:
            await self._wait()
        if self._error is not None:
            raise self._error

    async def _wait(self) -> None:
        """Wait for events of a stream, or for the end."""
        try:
            await self._events.wait()
        except BaseException:  # the client has disconnected
            self._close()
            raise

    def attach(self, writer: PartWriter) -> None:
        """Write events with `writer` from now on, while the client keeps up."""
        self._events.attach(writer)

    def __aiter__(self) -> Generation:
        return self

    async def __anext__(self) -> bytes:
        found: bytes | None = await self._events.take()
        if found is None:
            raise StopAsyncIteration
        return found

    async def aclose(self) -> None:
        """Cancel every request that still runs."""
        self._close()

    def end(self, error: CoreError) -> None:
        """End with an error, because the server stops; events that have come are sent before it."""
        self._fail(error)

    def receive(self, number: int, item: InferenceResponse | CoreError | None, final: bool) -> None:
        """Take an item of the reply of a choice."""
        if self._over:
            return
        if isinstance(item, CoreError):
            self._fail(item)
            return
        try:
            if item is not None:
                self._take(number, self._readers[number].read(item))
            if final:
                self._end_choice(number)
        except CoreError as error:
            self._fail(error)
        except (
            Exception
        ) as error:  # of a chat template's parser, for example: one stream must not hurt the loop
            self._fail(
                internal(f"a response could not be written: {type(error).__name__}: {error}")
            )

    def begin_texts(self, number: int, texts: TextEvents) -> bool:
        """Let `texts` make the events of plain texts of a choice, if it can. Return whether it does."""
        around = self._choices[number].around if self._stream else None
        if around is not None:
            texts.begin(self._output, *around)
        return around is not None

    def _take(self, number: int, piece: Piece) -> None:
        self._size += len(piece.text)
        if self._size > MOST_TEXT and not self._stream:
            raise unavailable(
                f"the model has generated more than {MOST_TEXT} characters; set max_tokens, or stream"
            )
        self._add(self._choices[number].take(piece))

    def _end_choice(self, number: int) -> None:
        request = self._running.pop(number)
        self._backlog.leave(request)
        forget_cost(request)
        if rest := self._readers[number].end():
            self._take(number, Piece(rest))
        self._left -= 1
        events = self._choices[number].end()
        if self._left:
            self._add(events)
            return
        self._add(events + self._tail())
        self._over = True
        self._backlog.close()
        self._events.end()

    def _add(self, events: bytes) -> None:
        if events:
            self._events.add(events, len(events))

    def _fail(self, error: CoreError) -> None:
        if self._over:
            return
        self._error = error
        if self._begun:
            self._add(self._error_event(encodable_error(error)))
        self._close()

    def _close(self) -> None:
        self._over = True
        self._backlog.close()
        running, self._running = self._running, {}
        for request in running.values():
            request.cancel()
            forget_cost(request)
        self._events.end()


class _Listener:
    """Listener of one reply. Once the first event is made, `texts` makes those of plain texts."""

    __slots__ = ("_begun", "_generation", "_number", "texts")

    def __init__(self, generation: Generation, number: int, queue: EventQueue):
        self._generation = generation
        self._number = number
        self._begun = False
        self.texts = TextEvents(queue, self._receive, True)

    def _receive(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        self._generation.receive(self._number, item, final)
        if not (self._begun or final):
            self._begun = self._generation.begin_texts(self._number, self.texts)
