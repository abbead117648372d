"""Method: one method of the protocol, below the transport.

A unary method takes the bytes of the request and gives the bytes of the response; one that streams
takes and gives iterators of them. Both raise CoreError. When the client disconnects, the engine cancels
the call and the task that runs the method.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from core.errors import CoreError
from core.tensor import Buffer
from frontends.grpc.call import GrpcCall
from frontends.shared.access import ActiveCall
from frontends.shared.load_reports import LoadReports

Message = bytes | list[Buffer]  # whole, or in parts that are sent one after another
Done = Callable[[Message | CoreError], None]
BeginFunction = Callable[[bytes, GrpcCall, Done], None]
EnterFunction = Callable[[GrpcCall], ActiveCall]
ReceivedFunction = Callable[[GrpcCall, bytes], None]
UnaryFunction = Callable[[bytes, GrpcCall], Awaitable[bytes]]
StreamFunction = Callable[[AsyncIterator[bytes], GrpcCall], AsyncGenerator[bytes, None]]


@dataclass(frozen=True)
class UnaryMethod:
    """A method with one request and one response.

    changes    whether a call may change the server, or a function that returns this for a request. With
               `category` it decides which roles may call the method (frontends/shared/access/roles.py)
    enter      checks a call when its headers are here, before anything of its message is taken: the engine
               calls it once, keeps the result in `call.active`, and refuses the call if it raises CoreError;
               None if every call may go on
    begin      does the same as `function` without a task: `begin(request, call, done)` calls `done` once
               on the loop, perhaps before it returns, and raises nothing; None: only `function` exists
    """

    path: str  # /package.Service/Method, as on the wire
    category: str  # which --grpc-restricted-protocol it belongs to
    function: UnaryFunction
    compress: bool = False  # --grpc-infer-response-compression-level is for its responses
    begin: BeginFunction | None = None
    operations: tuple[str, ...] = ()  # names of the control operations that it calls
    changes: bool | Callable[[bytes], bool] = True
    enter: EnterFunction | None = None
    received: ReceivedFunction | None = None  # gets each message, unpacked
    load: LoadReports | None = None  # what its trailers report


@dataclass(frozen=True)
class StreamMethod:
    """A method with any number of requests and responses. Its attributes mean the same as in UnaryMethod."""

    path: str
    category: str
    function: StreamFunction
    compress: bool = False
    changes: bool = True
    enter: EnterFunction | None = None
    received: ReceivedFunction | None = None
    load: LoadReports | None = None


Method = UnaryMethod | StreamMethod
