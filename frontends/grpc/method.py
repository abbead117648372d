"""Method: one method of the protocol, below the transport.

A unary method takes the bytes of the request and gives the bytes of the response; one that streams
takes and gives iterators of them. Both raise CoreError. When the caller goes away the engine cancels
the call and the task that runs the method.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from frontends.grpc.call import Call

UnaryFunction = Callable[[bytes, Call], Awaitable[bytes]]
StreamFunction = Callable[[AsyncIterator[bytes], Call], AsyncGenerator[bytes, None]]


@dataclass(frozen=True)
class Unary:
    """A method with one request and one response.

    path       /package.Service/Method, as on the wire
    category   which --grpc-restricted-protocol it belongs to
    compress   whether --grpc-infer-response-compression-level is for its responses
    """

    path: str
    category: str
    function: UnaryFunction
    compress: bool = False


@dataclass(frozen=True)
class Stream:
    """A method with any number of requests and responses; the same attributes."""

    path: str
    category: str
    function: StreamFunction
    compress: bool = False


Method = Unary | Stream
