"""The calls of grpcio: each runs a method and becomes its response or its status. Event loop only.

grpcio ─► [MethodRouter] ─► method.  Requests and responses stay bytes here.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import grpc
import grpc.aio

from core.errors import CoreError, internal
from core.system.account import MemoryAccount, Share
from frontends.grpc.call import GrpcCall, Metadata
from frontends.grpc.load import load_of
from frontends.grpc.method import Method, UnaryMethod
from frontends.grpc.observing import observe
from frontends.grpc.status import Code, code_of, details, unforeseen
from frontends.shared.access.certificates import first_name
from frontends.shared.call_observers import CallObservers

Context = Any  # grpc.aio.ServicerContext, whose stubs lack what it inherits
Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"

_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


class MethodRouter(grpc.GenericRpcHandler):
    """Gives grpcio the handler for the path of a call; None for an unknown path.

    methods      path → method
    compresses   whether grpcio compresses responses; the handlers of methods with `compress` false prevent it
    account      counts the bytes that calls hold
    observers    asked for each call
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        compresses: bool,
        account: MemoryAccount,
        observers: CallObservers,
    ):
        self._handlers = {
            path: _handler(_Run(each, compresses and not each.compress, account, observers), each)
            for path, each in methods.items()
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        return self._handlers.get(handler_call_details.method)


class _Source:
    """The Source of a GrpcCall: reads grpcio's context of the call, and counts the memory that it holds.

    grpcio does not say which calls share a connection, so each call has a share of its own.
    """

    def __init__(self, context: Context, share: Share):
        self._context = context
        self._share = share

    def metadata(self) -> Metadata:
        return self._context.invocation_metadata() or ()

    def peer(self) -> str:
        return str(self._context.peer())

    def certificate(self) -> str:
        found: Mapping[str, Sequence[bytes]] = self._context.auth_context()
        keys = ("x509_common_name", "peer_uri", "peer_dns", "peer_email")
        return first_name(
            each.decode("utf-8", "replace") for key in keys for each in list(found.get(key, ()))[:1]
        )

    def hold(self, size: int, what: str) -> None:
        self._share.take(size, what)

    def release(self, size: int) -> None:
        self._share.give(size)


def _handler(run: _Run, method: Method) -> Handler:
    """Return the handler of a method for grpcio, without serializers, so that bytes stay bytes.

    grpcio receives the message of a unary call before it calls the handler. A method with an `enter` is
    therefore one that streams to grpcio, whose handler decides itself when to receive.
    """
    if not isinstance(method, UnaryMethod):
        return grpc.stream_stream_rpc_method_handler(run.stream)
    if method.enter is not None:
        return grpc.stream_stream_rpc_method_handler(run.entered_unary)
    return grpc.unary_unary_rpc_method_handler(run.unary)


class _Run:
    """Runs the calls of one method.

    plain   whether responses are sent uncompressed although the server compresses others
    """

    def __init__(
        self, method: Method, plain: bool, account: MemoryAccount, observers: CallObservers
    ):
        self._method = method
        self._plain = plain
        self._account = account
        self._observers = observers

    async def unary(self, request: bytes, context: Context) -> bytes:
        async with self._running(context) as call:
            return await self._answered(request, call, context)
        raise AssertionError("abort raises")

    async def entered_unary(self, requests: AsyncIterator[bytes], context: Context) -> None:
        async with self._running(context) as call:
            request = await anext(requests, None)
            if request is None:
                raise internal("a unary call has one message")
            await context.write(await self._answered(request, call, context))

    async def stream(self, requests: AsyncIterator[bytes], context: Context) -> None:
        function: Any = self._method.function
        async with (
            self._running(context) as call,
            contextlib.aclosing(function(self._noted(requests, call), call)) as responses,
        ):
            async for response in responses:
                if call.active is not None or call.observation is not None:
                    call.sent(response)
                if self._plain:
                    context.disable_next_message_compression()
                await context.write(response)

    def _noted(self, requests: AsyncIterator[bytes], call: GrpcCall) -> AsyncIterator[bytes]:
        """Begin the observation of a stream, if an observer wants it; return an iterator over its requests.

        `Method.received`, if it is set, and an observation get each request before the iterator yields it.
        """
        received = self._method.received
        if (begin := self._observers.begin) is not None:
            observe(begin, self._method, call)
        if received is None and call.observation is None:
            return requests

        async def noted() -> AsyncIterator[bytes]:
            async for request in requests:
                if received is not None:
                    received(call, request)
                if call.observation is not None:
                    call.observation.receive(request)
                yield request

        return noted()

    async def _answered(self, request: bytes, call: GrpcCall, context: Context) -> bytes:
        if self._method.received is not None:
            self._method.received(call, request)
        if (begin := self._observers.begin) is not None:
            observe(begin, self._method, call, request)
        call.hold(len(request), "a message")
        if self._plain:
            context.disable_next_message_compression()
        function: Any = self._method.function
        answer: bytes = await function(request, call)
        if call.active is not None or call.observation is not None:
            call.sent(answer)
            call.end(Code.OK)
        return answer

    @contextlib.asynccontextmanager
    async def _running(self, context: Context) -> AsyncIterator[GrpcCall]:
        """Yield the GrpcCall of a call, after `Method.enter` has accepted it, if it is set.

        At the end of the block, end the call, and release its memory. An exception, also one of `enter`, ends
        grpcio's call with its status. If the client has gone, cancel the call.
        """
        share = self._account.share()
        call = GrpcCall(None, _deadline_ns(context), _Source(context, share))
        try:
            if self._method.enter is not None:
                call.active = self._method.enter(call)
            yield call
            call.end(Code.OK)
            self._report_load(call, Code.OK, context)
        except CoreError as error:
            call.end(code_of(error), details(error.message))
            self._report_load(call, code_of(error), context)
            await _abort(context, error)
        except asyncio.CancelledError:
            call.cancel()
            raise
        except grpc.aio.InternalError:  # the client went away while it was written to
            call.cancel()
            raise asyncio.CancelledError from None
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            refusal = unforeseen(self._method.path, error)
            call.end(Code.INTERNAL, details(refusal.message))
            self._report_load(call, Code.INTERNAL, context)
            await _abort(context, refusal)
        finally:
            call.end(Code.CANCELLED)  # if it has not ended
            share.close()

    def _report_load(self, call: GrpcCall, code: Code, context: Context) -> None:
        """Add the load report to the trailers, if the call has one."""
        if self._method.load is None:
            return
        name, value = load_of(self._method.load, call, code)
        if name:
            is_text = not name.endswith("-bin")
            context.set_trailing_metadata(((name, value.decode() if is_text else value),))


def _deadline_ns(context: Context) -> int:
    remaining_s = context.time_remaining()
    return 0 if remaining_s is None else time.monotonic_ns() + int(remaining_s * 1e9)


async def _abort(context: Context, error: CoreError) -> NoReturn:
    await context.abort(_STATUS_CODES[code_of(error)], details(error.message))
    raise AssertionError("abort raises")
