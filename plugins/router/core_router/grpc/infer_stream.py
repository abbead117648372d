"""InferStream: one call of ModelStreamInfer, whose requests may reach several servers.

ClientLink ─► messages ─► [InferStream] ─► ServerStream … ─► responses in the order of the requests

All requests for a model reach the same server while it is ready; those that name a sequence its server.
Responses of models that answer each request once are sent in the order of the requests, as one server does.
Those of decoupled models are sent when they come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from time import monotonic
from typing import TYPE_CHECKING, Any

from core_router.grpc.kept import KeptBytes
from core_router.grpc.messages import MessageScanner, plain
from core_router.grpc.native.blocks import field, without
from core_router.grpc.native.link import Receiver
from core_router.grpc.native.scan import request_fields, response_fields
from core_router.grpc.server_stream import REQUEST_BYTES, ServerStream, StreamRequest
from core_router.grpc.statuses import (
    HEAD,
    OK,
    RESOURCE_EXHAUSTED,
    UNAVAILABLE,
    only_trailers,
    seconds_of,
    status_block,
)
from core_router.grpc.stream_choice import TOO_MANY_MODELS, StreamChoice
from core_router.targets import Purpose

if TYPE_CHECKING:
    from core_router.grpc.native.link import ClientLink
    from core_router.grpc.port import GrpcPort
    from core_router.servers.server import Server

_MOST_UNPACKED = 64 * 1024  # of a compressed message, for its names
_MOST_WAITING = 4 << 20  # bytes of requests and responses that wait, before the client is not read


class InferStream(Receiver):
    """One stream. Event loop only.

    head         block for servers
    is_waiting   whether it waits for a turn to take more of its messages
    deadline_s   time of the monotonic clock; 0 for none
    """

    def __init__(self, port: GrpcPort, link: ClientLink, id: int, head: bytes) -> None:
        self.port = port
        # Servers that compress differently could not answer the same client.
        self.head = without(head, b"grpc-accept-encoding")
        self._link = link
        self._id = id
        self._router = port.router
        self.is_waiting = False
        self._scanner = MessageScanner()
        self._servers: dict[Server, ServerStream] = {}
        self._choice = StreamChoice(port.router)
        self._shown: set[str] = set()  # models that have shown to be decoupled
        self._turns: deque[StreamRequest] = deque()  # one response each; the first is sent next
        self._later: deque[bytes] = deque()  # messages that are taken next
        self._task: Any = None
        self._kept = KeptBytes(port.router)
        self._has_responded = self._is_finished = self._is_over = False
        self._ends_when_idle = False
        self._is_held = False  # whether the client waits, since too much waits here
        timeout = field(head, b"grpc-timeout")
        self.deadline_s = monotonic() + seconds_of(timeout) if timeout is not None else 0.0
        port.streams.add(self)

    # for the client -------------------------------------------------------

    def received(
        self, head: bytes | None, data: bytes | None, trailers: bytes | None, is_over: bool
    ) -> None:
        if self._is_over:
            return
        self._is_finished = is_over
        if data is not None:
            self._kept.add(len(data))
            if self._scanner.is_next(data):
                self._later.append(data)
            else:
                self._scanner.add(data)
        self.go_on()
        self._end_if_too_large()

    def gone(self, error: int) -> None:
        """End the stream: the client has cancelled it, or has left."""
        if not self._is_over:
            self._end()

    def room(self) -> None:
        for each in list(self._servers.values()):
            each.resume()

    def may_read(self) -> None:
        """Let the client send more, unless too much waits."""
        # A message that is larger than the bound comes alone.
        comes_alone = self._scanner.size and not self._scanner.has_more and not self._turns
        self._is_held = self._kept.size >= _MOST_WAITING and not comes_alone
        if not self._is_held:
            self._link.open_window(self._id)

    def end_when_idle(self) -> None:
        """End the stream, at once or when no request waits: the router ends."""
        self._ends_when_idle = True
        if not self._waits and not any(each.has_decoupled for each in self._servers.values()):
            self.fail(UNAVAILABLE, "the router ends")

    # requests -------------------------------------------------------------

    def go_on(self) -> None:
        """Take messages that have come, as far as it is the turn of this stream."""
        if self._is_over or self._task is not None:
            return
        has_room = True
        if self._scanner.has_more:
            self._later.extend(self.port.turns.messages(self, self._scanner))
        while self._later and self._task is None and not self._is_over:
            has_room = self._take(self._later.popleft()) and has_room
        if self._end_if_too_large() or self._task is not None:
            return
        if self._is_finished:
            self._finish()
            return
        if self._ends_when_idle:
            self.end_when_idle()
        if has_room and not self.is_waiting:
            self.may_read()

    def _take(self, message: bytes) -> bool:
        """Send a request to its server. Return False if the client should wait before it sends more."""
        fields = request_fields(*plain(message, _MOST_UNPACKED))
        route = self._router.table.for_model(Purpose.INFERENCE, fields.model, fields.version)
        if not route.is_known and self._router.may_look():
            self._later.appendleft(message)  # before those that came after it
            self._task = self.port.task(self, self._look())
            return False
        if not self._choice.remembers(fields.model):
            self.fail(RESOURCE_EXHAUSTED, TOO_MANY_MODELS)
            return True
        self._router.budget.request()
        is_decoupled = route.is_decoupled or fields.model in self._shown
        request = StreamRequest(message, fields.id, route, fields.sequence, is_decoupled)
        if not is_decoupled:
            self._turns.append(request)
            self._kept.add(REQUEST_BYTES)
        return self._send(request)

    async def _look(self) -> None:
        await self._router.look_again()
        self._task = None
        self.go_on()

    def _send(self, request: StreamRequest) -> bool:
        found = self._choice.choose(request, self._servers)
        if found is None:
            self._refuse(request)
            return True
        request.server_model = found
        request.tried = (*request.tried, found)
        request.sent_s = monotonic()
        server = found.server
        stream = self._servers.get(server)
        is_new = stream is None
        if stream is None:
            stream = self._servers[server] = ServerStream(self, server)
        message, turns = request.message, len(self._turns)
        stream.add(request, found)
        if (
            request.is_decoupled
            or len(message) > self._router.limits.kept_body_bytes
            or self._kept.are_too_many()
        ):
            self._kept.add(-len(request.message))
            request.message = b""
        has_room = stream.send(message)
        if is_new:
            stream.open()
        elif len(self._turns) != turns:
            self._send_responses()  # those that waited for a turn of a model that has none
        return has_room

    # responses ------------------------------------------------------------

    def answered(self, stream: ServerStream, head: bytes | None, message: bytes) -> bool:
        """Send a message of a server to the client, when it is its turn.

        Return False if the client does not take it at the moment.
        """
        has_failed, model, id, goes_on = response_fields(message, 5)
        turns = len(self._turns)
        request = stream.request_of(has_failed, model, id, goes_on)
        if not self._has_responded:
            self._has_responded = True
            self._link.respond(self._id, head or HEAD, False)
        if request is None:
            has_room = self._link.write(self._id, message)
            # Those that waited for a turn of a model that has none go on.
            return has_room if len(self._turns) == turns else self._send_responses() and has_room
        stream.waiting.remove(request)
        server_model = request.server_model
        assert server_model is not None
        now_s = monotonic()
        server_model.done(400 if has_failed else 200, now_s - request.sent_s, now_s)
        # A server that refuses a request, since it ends or does not have the model, names no model.
        if has_failed and not model and len(request.tried) == 1 and self._choice.moves(request):
            server_model.server.checks_now.set()
            self._router.metrics.retries["refused"] += 1
            self._send(request)
            return True
        if has_failed:
            self._choice.lost([request])
        request.response = message
        self._kept.add(len(message))
        has_room = self._send_responses()
        self._end_if_too_large()
        return has_room

    def shown(self, models: Set[str], requests: list[StreamRequest]) -> None:
        """Count models as decoupled: their requests, which wait for a response, have no turn any more."""
        self._shown |= models
        for each in requests:
            self._kept.add(-len(each.message) - REQUEST_BYTES)
            each.message, each.is_decoupled = b"", True
        self._turns = deque(each for each in self._turns if not each.is_decoupled)

    def _send_responses(self) -> bool:
        has_room = True
        while self._turns and (message := self._turns[0].response) is not None:
            request = self._turns.popleft()
            self._kept.add(-len(message) - len(request.message) - REQUEST_BYTES)
            has_room = self._link.write(self._id, message) and has_room
        if not self._turns:
            if self._is_finished:
                self._finish()
            elif self._ends_when_idle:
                self.end_when_idle()
            else:
                self.may_read()
        elif self._is_held and not self._is_finished:
            self.may_read()
        return has_room

    # ends -----------------------------------------------------------------

    def server_ended(
        self, stream: ServerStream, status: int, text: str, block: bytes | None, had_decoupled: bool
    ) -> None:
        """Have other servers answer what waits for a server whose stream has ended, or end the client's."""
        self._servers.pop(stream.server, None)
        if self._is_over:
            return
        self._choice.forget(stream.server)
        waiting, stream.waiting = list(stream.waiting), deque()
        for request in waiting:
            assert request.server_model is not None
            if status == UNAVAILABLE:
                request.server_model.failed(monotonic())
            else:
                request.server_model.left()
        if status == OK and not waiting:
            self._finish_if_answered(block)
            return
        if status == UNAVAILABLE:
            stream.server.checks_now.set()
            # Without an index, more responses may be missing than those that are known to be.
            is_known = stream.is_certain or (bool(waiting) and not stream.has_answered)
            if not had_decoupled and is_known and all(map(self._choice.moves, waiting)):
                for at, request in enumerate(waiting, 1):
                    self._router.metrics.retries["lost"] += 1
                    self._send(request)
                    if self._is_over:
                        self._choice.lost(waiting[at:])
                        return
                self._finish_if_answered(None)
                return
        if status == OK:
            # Without this the client takes what it has for all responses.
            status, text = UNAVAILABLE, "it ended the stream without all responses"
        if block is None or status == UNAVAILABLE:
            text = f"server {stream.server.name}: {text or 'it ended the stream'}"
            block = status_block(status, f"the stream was lost: {text}")
        self._choice.lost(waiting)
        self._end_with(block)

    def _refuse(self, request: StreamRequest) -> None:
        self._router.metrics.refused += 1
        self.fail(UNAVAILABLE, self._choice.failure(request))

    def _finish(self) -> None:
        """End what is sent to the servers, once no request can go to another one: the client has sent all."""
        if self._waits:
            return
        for each in list(self._servers.values()):
            each.finish()
        self._finish_if_answered(None)

    def _finish_if_answered(self, block: bytes | None) -> None:
        if self._is_finished and not self._servers and not self._waits:
            self._end_with(block or status_block(OK))

    @property
    def _waits(self) -> bool:
        """Whether requests have come that wait to be sent, or for the one response that they have."""
        return bool(self._later or self._scanner.has_more or self._turns)

    def fail(self, status: int, text: str) -> None:
        """End the stream with a status of the router."""
        self._end_with(status_block(status, text))

    def _end_with(self, block: bytes) -> None:
        """End the stream with a block of trailers, or with a head that has no more."""
        if self._is_over:
            return
        if self._has_responded:
            self._link.finish(self._id, only_trailers(block))
        elif field(block, b":status") is not None:
            self._link.respond(self._id, block, True)
        else:
            self._link.respond(self._id, HEAD + block, True)
        self._choice.lost(each for stream in self._servers.values() for each in stream.waiting)
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self.port.streams.discard(self)
        if self._task is not None:
            self._task.cancel()
        for stream in self._servers.values():
            for request in stream.waiting:
                if request.server_model is not None:
                    request.server_model.left()
            stream.cancel()
        self._servers = {}
        self._turns.clear()
        self._later.clear()
        self._kept.release()

    def _end_if_too_large(self) -> bool:
        """End the stream if the router keeps too much, some of it here. Return whether it has ended."""
        kept = self._kept
        if not self._is_over and kept.size and kept.are_too_many():
            self.fail(RESOURCE_EXHAUSTED, f"the router keeps more than --kept-bytes={kept.most}")
        return self._is_over
