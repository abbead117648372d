"""GrpcMethods: methods that plugins add to the gRPC port.

core_server_starting ─► GrpcMethods.of(server).add(methods) ─► table of the gRPC port.  Roles, restrictions,
limits and the access log apply to them as to all methods.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from google.protobuf.message import Message

from core.errors import CoreError, internal
from core.server import InferenceServer
from frontends.grpc.call import GrpcCall
from frontends.grpc.method import Method, StreamFunction, StreamMethod, UnaryFunction
from frontends.grpc.protocol.decode import decode
from frontends.grpc.requests_in_flight import RequestsInFlight

M = TypeVar("M", bound=Message)


class GrpcMethods:
    """The added methods of one server. Not thread-safe: call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._methods: list[Method] = []
        self._read = False

    @staticmethod
    def of(server: InferenceServer) -> GrpcMethods:
        """Return the methods of a server: the same object at every call."""
        return server.shared(GrpcMethods)

    def add(self, methods: Iterable[Method]) -> None:
        """Add methods: before the gRPC port opens, so in the hook core_server_starting.

        The port's own methods take precedence. Raises CoreError(INTERNAL) if the port has its methods
        already.
        """
        if self._read:
            raise internal(
                "methods are added too late: the gRPC port has read them; add them in core_server_starting"
            )
        self._methods += methods

    def read(self, intake: RequestsInFlight) -> tuple[Method, ...]:
        """Return the added methods, in their order. After this, none can be added.

        intake   ends the streams when the server stops
        """
        self._read = True
        return tuple(
            replace(each, function=_ending(each.function, intake))
            if isinstance(each, StreamMethod)
            else each
            for each in self._methods
        )

    async def close(self) -> None:
        """Forget the methods, because the server has stopped."""
        self._methods.clear()


def unary(request_class: type[M], service: Callable[[M], Awaitable[Message]]) -> UnaryFunction:
    """Return the function of a UnaryMethod: `service` gets the decoded request and returns the response.

    `service` may raise CoreError. A request that cannot be decoded is refused before.
    """

    async def answer(data: bytes, call: GrpcCall) -> bytes:
        return (await service(decode(request_class, data))).SerializeToString()

    return answer


def _ending(function: StreamFunction, intake: RequestsInFlight) -> StreamFunction:
    """Return a function whose stream also ends when `intake` ends all streams, after the server's drain.

    It raises the error for an idle stream (see RequestsInFlight.on_end), also if it is busy. The stream of
    `function` is closed, even while it waits for its next response.
    """

    async def responses(
        requests: AsyncIterator[bytes], call: GrpcCall
    ) -> AsyncGenerator[bytes, None]:
        stopped: asyncio.Future[CoreError] = asyncio.get_running_loop().create_future()

        def stop(running: CoreError, idle: CoreError) -> None:
            if not stopped.done():
                stopped.set_result(idle)

        forget = intake.on_end(stop)
        inner = function(requests, call)
        following: asyncio.Future[bytes] | None = None
        try:
            while True:
                following = asyncio.ensure_future(anext(inner))
                either: set[asyncio.Future[Any]] = {following, stopped}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if stopped.done():
                    raise stopped.result()
                try:
                    item = following.result()
                except StopAsyncIteration:
                    return
                yield item
        finally:
            forget()
            if following is not None:
                following.cancel()
                await asyncio.wait({following})
            await inner.aclose()

    return responses
