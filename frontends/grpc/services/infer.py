"""ModelInfer."""

from __future__ import annotations

import asyncio
import time
from typing import NoReturn

from core.errors import CoreError, cancelled, internal, unsupported
from core.future_setter import FutureSetter
from core.response import InferenceResponse, Reply, ReplyListener
from core.server import InferenceServer
from core.telemetry.log import failed
from core.telemetry.tracing import Trace
from frontends.grpc.call import GrpcCall
from frontends.grpc.method import Done, Message
from frontends.grpc.native.infer_response import response as encoded
from frontends.grpc.protocol import render
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.services.inbound import Inbound
from frontends.grpc.services.traced import bring_context, received
from frontends.grpc.status import unforeseen

PATH = "/inference.GRPCInferenceService/ModelInfer"


class InferService:
    """The method ModelInfer: one request, one response. Not thread-safe: use on the event loop."""

    def __init__(self, server: InferenceServer, inbound: Inbound, intake: RequestsInFlight):
        self._models = server.models
        self._tracing = server.tracing
        self._inbound = inbound
        self._intake = intake

    async def model_infer(self, data: bytes, call: GrpcCall) -> bytes:
        """Return the response; raises CoreError. For an engine that runs methods as tasks.

        If the task is cancelled, cancel the call.
        """
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.begin(data, call, FutureSetter(future))
        try:
            message = await future
        except asyncio.CancelledError:
            call.cancel()
            raise
        return message if isinstance(message, bytes) else b"".join(message)

    def begin(self, data: bytes, call: GrpcCall, done: Done) -> None:
        """Pass the request to its model, and call `done` once with the response or a CoreError.

        That may be before this returns. Needs no task and raises nothing; see UnaryMethod.begin. If the call
        is cancelled, so is the request.
        """
        try:
            self._intake.enter()
        except CoreError as error:
            done(error)
            return
        try:
            answer = self._ask(data, call, done)
        except Exception as error:
            self._intake.leave()
            refusal = _error_of(error)
            failed("", refusal)
            done(refusal)
            return
        if call.cancelled:
            answer.cancel()
            return
        reply = answer.reply  # an immediate response clears this attribute during `listen`
        reply.listen(answer)
        if answer.waits():
            call.on_cancel(answer.cancel)

    def _ask(self, data: bytes, call: GrpcCall, done: Done) -> UnaryResponse:
        """Pass the request to its model; return what will listen for its response.

        Raises CoreError if it is invalid or refused, and for a model that is decoupled.
        """
        start_ns = time.monotonic_ns() if self._tracing.on else 0
        asked = self._inbound.read(data, call)
        endpoint = self._inbound.endpoint(asked)
        signature = endpoint.signature
        if signature.decoupled:
            refuse_decoupled()
        request = self._inbound.request(asked, signature, call)
        if not start_ns:
            return new_response(endpoint.submit(request), self._intake, done)
        bring_context(self._tracing, call, request)
        read_ns = time.monotonic_ns()
        try:
            reply = self._models.ask(endpoint, request)
        except CoreError:
            received(request, start_ns, read_ns)
            raise
        trace = received(request, start_ns, read_ns)
        if trace is None:
            return new_response(reply, self._intake, done)
        return TracedUnaryResponse(reply, self._intake, done, trace)


class MeteredInferService(InferService):
    """InferService for servers whose calls are checked, limited, logged or named (Interceptors.needed).

    The meter of a call names the caller of each request, refuses the request if that caller has no tokens
    left, and counts the tokens that a language model reports.
    """

    def _ask(self, data: bytes, call: GrpcCall, done: Done) -> UnaryResponse:
        meter = None if call.active is None else call.active.meter()
        if meter is None:
            return InferService._ask(self, data, call, done)
        start_ns = time.monotonic_ns() if self._tracing.on else 0
        asked = self._inbound.read(data, call)
        endpoint = self._inbound.endpoint(asked)
        signature = endpoint.signature
        if signature.decoupled:
            refuse_decoupled()
        request = self._inbound.request(asked, signature, call)
        if start_ns:
            bring_context(self._tracing, call, request)
        read_ns = time.monotonic_ns()
        trace = None
        try:
            reply = meter.ask(self._models.ask, endpoint, request)
        finally:
            if start_ns:
                trace = received(request, start_ns, read_ns)
        if trace is None:
            return new_response(reply, self._intake, done)
        return TracedUnaryResponse(reply, self._intake, done, trace)


def refuse_decoupled() -> NoReturn:
    """Raise CoreError(UNSUPPORTED): one request has one response here."""
    raise unsupported("ModelInfer RPC doesn't support models with decoupled transaction policy")


class UnaryResponse(ReplyListener):
    """Waits for the response to a request, and calls `done` once. Not thread-safe: use on the event loop.

    `done` gets the response if there is exactly one, else a CoreError.
    reply   source of the response; released with all memory it holds when `done` is called
    """

    def __init__(self, reply: Reply, intake: RequestsInFlight, done: Done):
        self.reply = reply
        self._intake = intake
        self._done: Done | None = done
        self._earlier: list[InferenceResponse] | None = None  # responses before the final item

    def waits(self) -> bool:
        """Return whether `done` has not been called yet."""
        return self._done is not None

    def receive(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        """Receive one item of the reply; call `done` at the first error, or at the final item.

        item   response, or error; None for the end of a reply without another response
        Does nothing after `done` was called.
        """
        if self._done is None:
            return
        if final and self._earlier is None and isinstance(item, InferenceResponse):
            self._pass(self._rendered(item))
        elif isinstance(item, CoreError):
            failed(self.reply.request.id, item)
            self._pass(item)
        else:
            if self._earlier is None:
                self._earlier = []
            if item is not None:
                self._earlier.append(item)
            if final:
                self._pass(self._only())

    def cancel(self) -> None:
        """Cancel the request, since its client has disconnected, and call `done` with CoreError(CANCELLED).

        Does nothing after `done` was called.
        """
        if self._done is not None:
            self.reply.cancel()
            self._pass(cancelled())

    def _only(self) -> Message | CoreError:
        answers = self._earlier or []
        if len(answers) == 1:
            return self._rendered(answers[0])
        return internal(f"expected a single response, got {len(answers)}")

    def _rendered(self, response: InferenceResponse) -> Message | CoreError:
        try:
            message: Message | None = encoded(response, self.reply.request)
            if message is not None:
                return message
            return render.response_by_protobuf(response, self.reply.request)
        except Exception as error:
            return _error_of(error, self.reply.request.id)

    def _pass(self, outcome: Message | CoreError) -> None:
        # The reply of a cancelled request may have ended already.
        if (done := self._done) is None:
            return
        self._done = None
        self._earlier = None
        self.reply = None  # type: ignore[assignment]
        self._intake.leave()
        done(outcome)


def new_response(reply: Reply, intake: RequestsInFlight, done: Done) -> UnaryResponse:
    """Return UnaryResponse(…), faster than its constructor, since each request needs one."""
    answer: UnaryResponse = UnaryResponse.__new__(UnaryResponse)
    answer.reply = reply
    answer._intake = intake
    answer._done = done
    answer._earlier = None
    return answer


class TracedUnaryResponse(UnaryResponse):
    """UnaryResponse of a traced request: it holds the trace until `done` was called.

    GRPC_SEND in the trace is the time in which the response is encoded; the engine sends it later. For an
    error, it begins and ends at one moment.
    """

    def __init__(self, reply: Reply, intake: RequestsInFlight, done: Done, trace: Trace):
        super().__init__(reply, intake, done)
        self._trace = trace
        trace.hold()

    def _rendered(self, response: InferenceResponse) -> Message | CoreError:
        self._trace.stamp("GRPC_SEND_START")
        outcome = UnaryResponse._rendered(self, response)
        self._trace.stamp("GRPC_SEND_END")
        return outcome

    def _pass(self, outcome: Message | CoreError) -> None:
        waiting = self._done is not None
        if waiting and isinstance(outcome, CoreError):
            self._trace.span("GRPC_SEND", 0, 0)
        UnaryResponse._pass(self, outcome)
        if waiting:
            self._trace.release()


def _error_of(error: Exception, id: str = "") -> CoreError:
    return error if isinstance(error, CoreError) else unforeseen(PATH, error, id)
