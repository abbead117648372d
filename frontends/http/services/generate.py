"""generate and generate_stream: inference in plain JSON, with one response or an event for each response.

call ─► codec.generate.read ─► InferenceServer.infer ─► Reply ─► codec.generate.write ─► events
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

import orjson

from core.backlog import Backlog
from core.errors import CoreError, internal, invalid
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core.server import InferenceServer
from core.tensor import Buffer
from frontends.http.background import LARGE_BYTES, begin, turn
from frontends.http.codec import form
from frontends.http.codec import generate as codec
from frontends.http.codec.json_text import MEMBERS, read_json
from frontends.http.errors import error_answer, refusal, status_of, unexpected
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse
from frontends.http.native.event_stream import EventQueue, PartWriter, TextEvents
from frontends.http.options import HttpOptions
from frontends.http.services.traced import submit, traced

logger = logging.getLogger("core")

_NOT_ONE = (
    "generate expects model to produce exactly 1 response, use generate stream for model that "
    "generates various number of responses"
)
_EVENT_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8"}

Item = InferenceResponse | CoreError


async def generate(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the only response of the model. No response or several ones are an error with status 200.

    Triton has that status, too. The request is cancelled if this coroutine is cancelled because the client
    has disconnected, and after an error or a second response of the model.
    """
    reply = await _asked(server, call)
    return await traced(reply, _only_answer(reply))


async def _only_answer(reply: Reply) -> HttpResponse:
    async with aclosing(aiter(reply)) as answers:
        first = await anext(answers, None)
        if isinstance(first, CoreError):
            raise first
        if first is None or await anext(answers, None) is not None:
            return refusal(200, _NOT_ONE)
        return HttpResponse(200, JSON_HEADERS, await _text(first, b"", b""))


async def generate_stream(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Wait for the first response, and return a stream with an event for each response.

    The first response decides the status: 200, or that of its error. Without a response, the stream is empty.
    The request is cancelled when the client disconnects.
    """
    reply = await _asked(server, call)
    events = ResponseEvents(reply)
    call.reply = events
    return await traced(reply, _event_stream(events))


async def _event_stream(events: ResponseEvents) -> HttpResponse:
    first = await events.first()
    if first is None:
        return HttpResponse(200, _EVENT_HEADERS)
    status, event = await _event(first)
    return HttpResponse(status, _EVENT_HEADERS, event, events)


async def messages(
    server: InferenceServer, call: HttpRequest, id: str | None
) -> AsyncGenerator[bytes, None]:
    """Generate the contents of generate_stream's events, for a connection with several requests.

    id   result of `asked_id` for the request
    Refusals are messages too. Every error has the id of its request, if there is one. Closing the generator
    before its end cancels the request.
    """
    try:
        answers = aiter(await _asked(server, call))
    except CoreError as error:
        yield error_message(error, id)
        return
    except Exception:
        yield _with_id(unexpected(f"a request to {call.path}").body, id)
        return
    async with aclosing(answers):
        async for item in answers:
            text = (await _written(item))[1]
            yield _with_id(text, id) if isinstance(item, CoreError) else text


async def asked_id(asked: Buffer) -> str | None:
    """Return the id of a generate request; None if the request or its id is malformed, or it has no id."""

    def read() -> str | None:
        try:
            document = read_json(asked, MEMBERS)
            found = document.get("id") if type(document) is dict else None
            found = codec.text_of("id", found)
        except CoreError:
            return None
        return found if type(found) is str else None

    return read() if len(asked) < LARGE_BYTES else await begin(read)


def error_message(error: CoreError, id: str | None) -> bytes:
    """Return the message with an error, as a JSON object: `error` and, unless it is None, `id`."""
    return _with_id(_refused(error)[1], id)


def final_message(id: str | None) -> bytes:
    """Return the message that follows the last response to a request: `final` and, unless None, `id`."""
    return _with_id(b'{"final":true}', id)


def _with_id(text: bytes, id: str | None) -> bytes:
    """Return a nonempty JSON object with the member `id` added; the text itself if `id` is None."""
    return text if id is None else b'%b,"id":%b}' % (text[:-1], orjson.dumps(id))


async def _asked(server: InferenceServer, call: HttpRequest) -> Reply:
    model, version = call.model, call.version
    signature = server.models.signature(model, version)
    if call.headers.get("Content-Encoding", "identity") != "identity":
        raise invalid("Unsupported content-encoding, only 'identity' is supported.")
    most_bytes = HttpOptions.of(server.options).http_max_input_size

    def read() -> InferenceRequest:
        if form.is_form(call.headers):
            return form.read(model, version, signature, call.headers, call.body, most_bytes)
        return codec.read(model, version, signature, call.body, most_bytes)

    if len(call.body) < LARGE_BYTES:
        request = read()
    else:
        async with turn():
            request = await begin(read)
    call.asked = request
    call.reply = submit(server, call, request)
    return call.reply


class ResponseEvents:
    """The events of one request (message.PushedParts). Not thread-safe: call from the event loop only.

    TextEvents makes the events of texts; this class takes all other responses and errors.
    """

    def __init__(self, reply: Reply):
        self._request = reply.request
        self._backlog = Backlog(self._give_up)
        self._backlog.enter(self._request)
        self._queue = EventQueue(self._backlog)
        self._writer: PartWriter | None = None
        self._texts: TextEvents | None = TextEvents(self._queue, self._receive, False)
        reply.listen(self._texts)

    async def first(self) -> Item | None:
        """Wait for the first item and return it; None if there is none. Cancel the request if that fails."""
        try:
            found: Item | None = await self._queue.take()
        except BaseException:  # the client has disconnected
            await self.aclose()
            raise
        return found

    def attach(self, writer: PartWriter) -> None:
        self._writer = writer
        self._queue.attach(writer)

    def __aiter__(self) -> ResponseEvents:
        return self

    async def __anext__(self) -> bytes:
        part = await self._queue.take()
        if part is None:
            raise StopAsyncIteration
        if isinstance(part, bytes):
            return part
        if self._writer is not None:
            self._writer.busy = True  # later events wait until this one is written
        return (await _event(part))[1]

    async def aclose(self) -> None:
        """Cancel the request unless its last response has come, and drop the responses that wait here."""
        if not self._queue.ended:
            self._request.cancel()
        self._queue.end()
        self._queue.drop()
        self._backlog.close()

    def end(self, error: CoreError) -> None:
        """Cancel the request, and send `error` after the events that have come."""
        self._queue.add(error, 0)
        self._queue.end()
        self._backlog.close()
        self._request.cancel()

    def _give_up(self, error: CoreError) -> None:
        self._queue.drop()
        self.end(error)

    def _receive(self, item: Item | None, final: bool) -> None:
        texts, self._texts = self._texts, None
        if isinstance(item, InferenceResponse):
            self._queue.add(item, sum(each.byte_size for each in item.outputs))
            if texts is not None and (found := codec.around_text(item)) is not None:
                output, before, behind = found
                texts.begin(output, b"data: " + before, behind + b"\n\n")
        elif item is not None:
            self._queue.add(item, 0)
        if final:
            self._backlog.leave(self._request)
            self._queue.end()


async def _event(item: Item) -> tuple[int, bytes]:
    return await _written(item, b"data: ", b"\n\n")


async def _text(response: InferenceResponse, before: bytes, behind: bytes) -> bytes:
    """Return what `codec.write` returns; call it on another thread if that takes long."""
    if codec.takes_long(response):
        return await begin(codec.write, response, before, behind)
    return codec.write(response, before, behind)


async def _written(item: Item, before: bytes = b"", behind: bytes = b"") -> tuple[int, bytes]:
    """Return (HTTP status, JSON text between `before` and `behind`) for a response or an error.

    A response that cannot be written has status and text of the error.
    """
    if isinstance(item, InferenceResponse):
        try:
            return 200, await _text(item, before, behind)
        except CoreError as error:
            item = error
        except Exception:
            logger.exception("a response of model '%s' cannot be sent", item.model_name)
            item = internal(f"a response of model '{item.model_name}' cannot be sent")
    status, text = _refused(item)
    return status, before + text + behind


def _refused(error: CoreError) -> tuple[int, bytes]:
    return status_of(error), error_answer(error).body
