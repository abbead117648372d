"""ModelStreamInfer: any number of requests, to any models, on one stream."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field

from core.backlog import Backlog
from core.errors import CoreError, cancelled, internal
from core.request import NEWEST, InferenceRequest
from core.response import InferenceResponse, Reply
from core.server import InferenceServer
from core.telemetry.log import failed
from frontends.grpc.access_log import code_of_end, entry_for
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol import render
from frontends.grpc.protocol.parse import wants_empty_final
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.services.inbound import Asked, Inbound
from frontends.grpc.services.metered import asking
from frontends.grpc.services.traced import Sending, bring_context, received
from frontends.grpc.status import code_of
from frontends.shared.access_log import AccessLog, AccessLogEntry

logger = logging.getLogger("core")

PATH = "/inference.GRPCInferenceService/ModelStreamInfer"

# While more bytes wait for a client that does not read, the server reads no more of its requests.
MOST_UNSENT_BYTES = 64 * 2**20

Item = bytes | CoreError  # a response, or the status with which the stream ends


class StreamService:
    """The method ModelStreamInfer. Call from the event loop only."""

    def __init__(
        self,
        server: InferenceServer,
        inbound: Inbound,
        intake: RequestsInFlight,
        access_log: AccessLog | None = None,
    ):
        self.server = server
        self.models = server.models
        self.access_log = access_log
        self.inbound = inbound
        self.intake = intake

    def model_stream_infer(
        self, requests: AsyncIterator[bytes], call: GrpcCall
    ) -> AsyncGenerator[bytes, None]:
        return InferStream(self, call).responses(requests)


@dataclass
class ResponseSlot:
    """Responses to one request that wait until those to all earlier requests of the stream are sent.

    items   the responses, or the error that ends the stream
    over    whether the last response has arrived
    """

    items: list[Item] = field(default_factory=list)
    over: bool = False


class InferStream:
    """One stream. Call from the event loop only. Invariants:

    1. Responses of ordinary models, and refusals, are sent in the order of their requests; responses of
       decoupled models are sent when they arrive.
    2. A failed request gets a response with an error message, and the stream continues. With
       `triton_grpc_error: true` in the metadata, the first error ends the stream with its status.
    3. After the client's last request, the stream ends when all requests have their last response. If it ends
       earlier, unfinished requests are cancelled.
    4. A Backlog counts the waiting responses of decoupled models, and pauses their requests.
    """

    def __init__(self, service: StreamService, call: GrpcCall):
        self._service = service
        self._call = call
        self._errors_end_it = call.value("triton_grpc_error") == "true"
        self._open: set[Reply] = set()  # accepted requests without their last response
        self._turns: deque[ResponseSlot] = deque()
        self._outbox: deque[tuple[Item, bool]] = deque()  # with whether the backlog counts it
        self._backlog = Backlog(self._give_up)
        self._unsent_bytes = 0
        self._reading = True
        self._reader: asyncio.Future[None]
        self._stirred = asyncio.Event()  # there is an item to send, or the stream may have ended
        self._room = asyncio.Event()  # an item was sent: reading may continue
        self._log = service.access_log
        self._lines: dict[Reply, AccessLogEntry] = {}  # of accepted requests, with an access log
        self._ask = asking(service.models, call)

    async def responses(self, requests: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Read requests, and yield the bytes of each response, until all are sent.

        Raises the CoreError that ends the stream before that.
        """
        reader = self._reader = asyncio.ensure_future(self._read(requests))
        forget = self._service.intake.on_end(self._end)
        self._call.on_cancel(lambda: self._put(cancelled()))
        try:
            while self._outbox or self._reading or self._open:
                if not self._outbox:
                    self._stirred.clear()
                    await self._stirred.wait()
                    continue
                item, counted = self._outbox.popleft()
                if isinstance(item, CoreError):
                    raise item
                self._unsent_bytes -= len(item)
                self._call.release(len(item))
                yield item
                if counted:
                    self._backlog.take(len(item))
                self._room.set()
        finally:
            forget()
            reader.cancel()
            self._abandon()

    def _end(self, running: CoreError, idle: CoreError) -> None:
        """End the stream, because the server stops.

        running, idle   the error of a stream with and without unfinished requests
        """
        self._put(running if self._open else idle)

    def _abandon(self) -> None:
        """Cancel the unfinished requests; later responses of them are dropped."""
        self._backlog.close()
        abandoned, self._open = self._open, set()
        for reply in abandoned:
            self._service.intake.leave()
            reply.cancel()  # counts its tokens in its line
            self._write_line(reply, cancelled())

    # requests --------------------------------------------------------------

    async def _read(self, requests: AsyncIterator[bytes]) -> None:
        try:
            counts = False  # the first request was counted with the call
            async for data in requests:
                if self._call.active is not None:
                    self._call.active.count_request(counts=counts)
                    counts = True
                self._accept(data)
                while self._unsent_bytes > MOST_UNSENT_BYTES:
                    self._room.clear()
                    await self._room.wait()
        except CoreError as error:  # invalid bytes: there is no request id to answer
            self._put(error)
        except Exception:
            logger.exception("a gRPC stream ends")
            self._put(internal("the server failed to read the stream; its log says why"))
        finally:
            self._reading = False
            self._stirred.set()

    def _accept(self, data: bytes) -> None:
        service, decoupled = self._service, False
        line = None if self._log is None else entry_for(self._call, PATH, data)
        tracing = service.server.tracing
        start_ns = time.monotonic_ns() if tracing.on else 0
        asked = service.inbound.read(data, self._call)
        held = service.inbound.made_bytes()
        try:
            service.intake.enter()
            try:
                self._call.hold(len(data), "a message")
                held += len(data)
                endpoint = service.inbound.endpoint(asked)
                decoupled = endpoint.signature.decoupled
                request = service.inbound.request(asked, endpoint.signature, self._call)
                if start_ns:
                    bring_context(tracing, self._call, request)
                read_ns = time.monotonic_ns()
                try:
                    reply = self._ask(endpoint, request, line)
                finally:
                    if start_ns:
                        received(request, start_ns, read_ns)
            except BaseException:
                service.intake.leave()
                raise
        except CoreError as error:
            self._call.release(held)
            if self._log is not None and line is not None:
                self._log.write(line, code_of(error), 0)
            turn = None if decoupled else self._next_turn()
            self._emit(turn, self._refusal(error, asked.id), True)
            return
        self._open.add(reply)
        if line is not None:
            self._lines[reply] = line
        if decoupled:
            self._backlog.enter(request)
        self._listen(reply, asked, None if decoupled else self._next_turn(), held)

    def _refusal(self, error: CoreError, id: str) -> Item:
        failed(id, error)
        return error if self._errors_end_it else render.stream_refusal(error, id)

    # responses -----------------------------------------------------------------

    def _listen(self, reply: Reply, asked: Asked, turn: ResponseSlot | None, size: int) -> None:
        """Send the responses in `reply` as they arrive; release `size` bytes of the call after the last.

        turn   as in `_emit`
        """
        named, tell_end = _named(asked), wants_empty_final(asked)

        def arrive(answer: InferenceResponse | CoreError | None, final: bool) -> None:
            if reply not in self._open:
                return
            if final:
                self._open.remove(reply)
                self._backlog.leave(reply.request)
                self._service.intake.leave()
                self._call.release(size)
            item: Item | None = None
            if answer is not None:
                item = self._rendered(answer, reply.request, named, final)
            elif tell_end:
                item = render.stream_end(*named)
            if self._lines:
                self._write_line(reply, answer, item, final)
            self._emit(turn, item, final)

        trace = reply.request.trace
        reply.listen(arrive if trace is None else Sending(trace, arrive))

    def _write_line(
        self,
        reply: Reply,
        answer: InferenceResponse | CoreError | None,
        item: Item | None = None,
        final: bool = True,
    ) -> None:
        """Count a response in the access log entry of its request; if `final`, write and forget the entry.

        Does nothing for a request without an entry.
        """
        if self._log is None or (line := self._lines.get(reply)) is None:
            return
        if isinstance(item, bytes):
            line.bytes_out += len(item)
        if isinstance(answer, CoreError):
            line.status = code_of_end(self._call, answer)
        if final:
            if self._call.active is not None:
                line.come_from(self._call.active.caller)
            self._log.write(self._lines.pop(reply), line.status, line.bytes_out)

    def _rendered(
        self,
        answer: InferenceResponse | CoreError,
        request: InferenceRequest,
        named: tuple[str, str, str],
        final: bool,
    ) -> Item:
        if isinstance(answer, InferenceResponse):
            try:
                return render.stream_response(answer, request, final)
            except CoreError as error:
                answer = error
            except Exception:
                logger.exception(
                    "[request id: %s] a response of model '%s' cannot be sent",
                    request.id or "<id_unknown>",
                    answer.model_name,
                )
                answer = internal(f"a response of model '{answer.model_name}' cannot be sent")
        failed(request.id, answer)
        return answer if self._errors_end_it else render.stream_error(answer, *named, final)

    def _next_turn(self) -> ResponseSlot:
        turn = ResponseSlot()
        self._turns.append(turn)
        return turn

    def _emit(self, turn: ResponseSlot | None, item: Item | None, final: bool) -> None:
        """Send `item`, if it is not None: at once if `turn` is None, else when it is its turn.

        turn    slot of the request; holds its responses until those to earlier requests are sent
        final   whether no item follows for the request
        """
        if turn is None:
            if item is not None:
                self._put(item, counted=True)
        else:
            if item is not None:
                turn.items.append(item)
            turn.over = final
            self._take_turns()
        self._stirred.set()  # the last request may end without a response

    def _take_turns(self) -> None:
        while self._turns:
            first = self._turns[0]
            for item in first.items:
                self._put(item)
            first.items.clear()
            if not first.over:
                return
            self._turns.popleft()

    def _put(self, item: Item, counted: bool = False) -> None:
        if isinstance(item, bytes):
            try:
                self._call.hold(len(item), "an answer")
            except CoreError as error:
                self._give_up(error)
                return
        counted = counted and isinstance(item, bytes)
        self._outbox.append((item, counted))
        self._stirred.set()
        if isinstance(item, bytes):
            self._unsent_bytes += len(item)
            if counted:
                self._backlog.add(len(item))

    def _give_up(self, error: CoreError) -> None:
        """Cancel all requests and drop all responses, because the client does not read.

        The stream ends with `error` as soon as the client reads again.
        """
        self._reader.cancel()
        self._abandon()
        self._outbox.clear()
        self._call.release(self._unsent_bytes)
        self._unsent_bytes = 0
        self._put(error)


def _named(asked: Asked) -> tuple[str, str, str]:
    """Return id, model name and version of the client's request; the version as text, "" for the newest."""
    version = asked.model_version
    if isinstance(version, int):
        version = "" if version == NEWEST else str(version)
    return asked.id, asked.model_name, version
