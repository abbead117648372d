"""WebSocket: generate_stream as a conversation, for browsers.

aiohttp ─► [WebSocketSession] ─► services.generate ─► Models.infer ─► Reply ─► a message for each answer

A text message of the client is a request in the form of generate. Its responses are text messages with the
contents of generate_stream's events, and `{"final": true}` follows the last of them. Errors are messages
with `error`. All of them have the `id` of their request, if it has one. Requests of one connection run
concurrently.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from urllib.parse import urlsplit

from core.errors import CoreError, unavailable
from core.server import InferenceServer
from frontends.http.aiohttp_connection import connection_of
from frontends.http.aiohttp_web import WSCloseCode, web
from frontends.http.cors import Cors
from frontends.http.errors import refusal
from frontends.http.incoming_messages import IncomingMessages
from frontends.http.message import EndsEarly, HttpRequest, HttpResponse
from frontends.http.services.generate import (
    asked_id,
    error_message,
    final_message,
    messages,
)
from frontends.shared.access import ActiveCall
from frontends.shared.shutdown import GOODBYE_S

logger = logging.getLogger("core")

MOST_REQUESTS = 16  # of one connection at a time; another is refused until one ends
HEARTBEAT_S = 60.0  # after so long without data a client gets a ping; without a pong it is gone

_NO_MEMORY = b"no memory for a message of its size; try again later"
_TOO_MANY = unavailable(f"{MOST_REQUESTS} requests of this WebSocket have no last answer yet")


def asked_for(request: web.BaseRequest) -> bool:
    """Return whether the client asks to upgrade to WebSocket."""
    return request.method == "GET" and request.headers.get("Upgrade", "").lower() == "websocket"


def refused(headers: Mapping[str, str], cors: Cors | None = None) -> HttpResponse | None:
    """Return the refusal of a WebSocket handshake, or None if it is permitted.

    It is permitted without an Origin header, for the server's own origin, and for origins that `cors` lists
    by name. Others are refused, because browsers let any page open a WebSocket with the user's credentials.
    """
    origin = headers.get("Origin")
    if origin is None or _authority(origin) == headers.get("Host", "").lower():
        return None
    if cors is not None and cors.lists(origin):
        return None
    return refusal(403, f"WebSocket is for pages of this server's own origin, not of '{origin}'")


def _authority(origin: str) -> str | None:
    """Return host and port of an origin in lower case; None if it is malformed."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


class WebSocketSession:
    """One WebSocket. Not thread-safe: call from the event loop only.

    request   the upgrade request
    active    call that its messages are counted for; None if nothing is counted
    """

    def __init__(
        self,
        server: InferenceServer,
        request: web.BaseRequest,
        most_bytes: int,
        active: ActiveCall | None = None,
    ):
        self._server = server
        self._request = request
        # Not compressed: a small message must not become a large one here.
        self._socket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_S, max_msg_size=most_bytes, compress=False, autoping=False
        )
        self._socket.headers["Server"] = "core"
        self._active = active
        self._counted = False  # whether a message has come: the first counts as the request itself
        self._running: dict[asyncio.Task[None], HttpRequest] = {}
        self._finishing: asyncio.Task[None] | None = None
        self._incoming = IncomingMessages(connection_of(request).share, self._exhausted)

    async def run(self, call: Callable[[bytes], HttpRequest]) -> web.StreamResponse:
        """Answer messages until the client or `finish` ends the connection. Then cancel unfinished requests.

        A binary message ends it, too.

        call   returns the request in the bytes of a message; may raise CoreError, for the client
        Raises HTTPException for a bad handshake.
        """
        connection = connection_of(self._request)
        connection.converses(self._incoming)
        try:
            await self._socket.prepare(self._request)
            while await self._take_message(call):
                pass
            if self._finishing is not None:
                await self._finishing  # the close handshake is under way
        finally:
            connection.incoming = None
            self._incoming.close()
            await self._cancel_requests()
            if self._finishing is not None:
                self._finishing.cancel()
        return self._socket

    async def _take_message(self, call: Callable[[bytes], HttpRequest]) -> bool:
        """Begin the next request of the client, or send why not. Return False when the connection ends."""
        body = await self._received()
        if body is None or (error := self._begin(body, call)) is None:
            return body is not None
        id = await asked_id(body)
        del body  # it may be large, and the client may not read
        await self._socket.send_str(error_message(error, id).decode())
        await self._socket.send_str(final_message(id).decode())
        return True

    async def _received(self) -> bytes | None:
        """Return the next message of the client; None when the connection ends. Answer pings."""
        socket, incoming = self._socket, self._incoming
        while True:
            incoming.waits = True
            message = await socket.receive()
            incoming.waits = False
            if message.type is web.WSMsgType.TEXT:
                body: bytes = message.data.encode()
                incoming.take(len(body), is_control=False)
                return body
            if message.type not in (web.WSMsgType.PING, web.WSMsgType.PONG):
                break
            incoming.take(len(message.data), is_control=True)
            if message.type is web.WSMsgType.PING:
                await socket.pong(message.data)
        if message.type is web.WSMsgType.BINARY:
            await socket.close(code=WSCloseCode.UNSUPPORTED_DATA, message=b"text is expected")
        return None

    def _begin(self, body: bytes, call: Callable[[bytes], HttpRequest]) -> CoreError | None:
        """Begin to answer the request in a message; return the error if it is refused."""
        if (error := self._objection()) is not None:
            return error
        try:
            asked = call(body)
        except CoreError as refused:
            return refused
        task = asyncio.ensure_future(self._answer(asked))
        self._running[task] = asked
        task.add_done_callback(self._over)
        return None

    async def _cancel_requests(self) -> None:
        """Cancel the unfinished requests; wait until the line of the access log has their tokens."""
        if running := tuple(self._running):
            for task in running:
                task.cancel()
            await asyncio.wait(running)

    def _objection(self) -> CoreError | None:
        """Return the error that refuses one more request; None if it is accepted.

        It is refused with MOST_REQUESTS running, at a limit of the caller, and if the caller lost its role.
        It counts in the limits, but not the first one, which was counted with the upgrade request.
        """
        if len(self._running) >= MOST_REQUESTS:
            return _TOO_MANY
        try:
            if self._active is not None:
                self._active.count_request(counts=self._counted)
        except CoreError as error:
            return error
        self._counted = True
        return None

    def replies(self) -> list[EndsEarly]:
        return [call.reply for call in self._running.values() if call.reply is not None]

    def finish(self) -> None:
        """Take no more requests, and close when the running ones end. For a server that stops."""
        if self._finishing is None:
            self._finishing = asyncio.ensure_future(self._finish())

    async def _finish(self) -> None:
        while self._running:
            await asyncio.wait(tuple(self._running))
        await self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"the server ends")

    def _exhausted(self) -> None:
        """Close, since there is no memory for a message that comes."""
        if self._finishing is None:
            self._finishing = asyncio.ensure_future(self._give_up())
        else:
            self._request.protocol.force_close()

    async def _give_up(self) -> None:
        # The client's answer is dropped, like all that it sends: it is not waited for long.
        with suppress(asyncio.TimeoutError):
            close = self._socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=_NO_MEMORY)
            await asyncio.wait_for(close, GOODBYE_S)

    def _over(self, task: asyncio.Task[None]) -> None:
        # Here and not in the task, which may be cancelled before it runs.
        self._running.pop(task).share.close()
        if not task.cancelled() and (error := task.exception()) is not None:
            if not isinstance(error, ConnectionError):  # else the client has disconnected
                logger.error("HTTP: a WebSocket is cut", exc_info=error)
            self._request.protocol.force_close()

    async def _answer(self, call: HttpRequest) -> None:
        socket = self._socket
        id = await asked_id(call.body)
        async with aclosing(messages(self._server, call, id)) as answers:
            async for text in answers:
                await socket.send_str(text.decode())
                # Sending waits for the client only now and then.
                await self._request.writer.drain()
        await socket.send_str(final_message(id).decode())
