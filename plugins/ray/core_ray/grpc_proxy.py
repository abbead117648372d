"""The KServe v2 protocol through Serve's gRPC proxy.

client ─► Serve's proxy: [add_v2] ─► replica: [GrpcMethods] ─► [GrpcForwarder] ─► gRPC port of its core.Server

Messages stay bytes on the whole way, so no process needs the classes of another one's messages, and none
registers them in protobuf's default pool.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

SERVICE = "inference.GRPCInferenceService"
STREAMING = "ModelStreamInfer"
INFER = "ModelInfer"
UNARY = (
    "ServerLive",
    "ServerReady",
    "ModelReady",
    "ServerMetadata",
    "ModelMetadata",
    "ModelConfig",
    "ModelStatistics",
    INFER,
    "RepositoryIndex",
    "RepositoryModelLoad",
    "RepositoryModelUnload",
    "SystemSharedMemoryStatus",
    "SystemSharedMemoryRegister",
    "SystemSharedMemoryUnregister",
    "CudaSharedMemoryStatus",
    "CudaSharedMemoryRegister",
    "CudaSharedMemoryUnregister",
    "TraceSetting",
    "LogSettings",
)

_UNLIMITED = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
_REQUEST_ID = "request_id"  # metadata that Serve reads and sends back
_OF_CONNECTION = ("user-agent", "te", "content-type")  # metadata that each connection has itself


def add_v2(servicer: Any, server: Any) -> None:
    """Add the service to Serve's gRPC proxy: `grpc_servicer_functions: [core_ray:add_v2]`.

    servicer   Serve's; the proxy calls the deployment instead of its methods
    """
    handlers: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(getattr(servicer, name)) for name in UNARY
    }
    handlers[STREAMING] = grpc.stream_stream_rpc_method_handler(getattr(servicer, STREAMING))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))


class Encoded:
    """A message that is encoded already. Serve encodes what a deployment returns."""

    def __init__(self, data: bytes):
        self._data = data

    def SerializeToString(self) -> bytes:
        return self._data


class GrpcForwarder:
    """Passes calls to the gRPC port of a server of the same process. Use it on one event loop only.

    target       returns host and port of the server's gRPC port; called for the first call
    request_id   returns the id of the current call, which a ModelInfer without one gets; "" for none
    The end of the task that sends a call cancels the call, so the server cancels the request. The requests
    of a stream keep their ids, also none: they are many, and clients match responses by them.
    """

    def __init__(self, target: Callable[[], Awaitable[str]], request_id: Callable[[], str] = str):
        self._target = target
        self._request_id = request_id
        self._channel: grpc.aio.Channel | None = None
        self._turn = asyncio.Lock()  # of opening it

    async def unary(self, method: str, request: bytes, context: Any) -> Encoded:
        """Return the response of the server. If it refuses, set its status in Serve's context of the call."""
        channel = await self._opened()
        call: Any = channel.unary_unary(f"/{SERVICE}/{method}")
        id = self._request_id()
        if id and method == INFER and not _has_id(request):
            request = _id_field(id) + request  # of two ids, the last one counts: the client's
        try:
            return Encoded(await call(request, metadata=_passed(context, id)))
        except grpc.aio.AioRpcError as error:
            _refuse(context, error)
            return Encoded(b"")

    async def stream(
        self, method: str, requests: AsyncIterator[bytes], context: Any
    ) -> AsyncIterator[Encoded]:
        """Iterate over the responses of the server. Raises RuntimeError if the stream ends with an error:
        Serve's proxy takes the status from the context of the call."""
        channel = await self._opened()
        open_stream: Any = channel.stream_stream(f"/{SERVICE}/{method}")
        call = open_stream(metadata=_passed(context, self._request_id()))
        # grpc.aio itself, given an iterator, ends a call whose connection fails as if it were cancelled.
        writing = asyncio.create_task(_written(requests, call))
        try:
            while (response := await call.read()) is not grpc.aio.EOF:
                yield Encoded(response)
        except grpc.aio.AioRpcError as error:
            _refuse(context, error)
            raise RuntimeError(f"{method}: {error.details()}") from None
        finally:
            writing.cancel()
            call.cancel()

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _opened(self) -> grpc.aio.Channel:
        async with self._turn:
            if self._channel is None:
                self._channel = grpc.aio.insecure_channel(await self._target(), options=_UNLIMITED)
            return self._channel


async def _written(requests: AsyncIterator[bytes], call: Any) -> None:
    """Send the requests of a stream. An error of the call is what its reader gets."""
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        async for each in requests:
            await call.write(each)
        await call.done_writing()


def _passed(context: Any, id: str) -> list[tuple[str, Any]]:
    """Return the metadata of a call without what gRPC itself sets, and with its id, if it has one."""
    found = [
        (name, value)
        for name, value in context.invocation_metadata()
        if not name.startswith("grpc-") and name not in _OF_CONNECTION
    ]
    if id and all(name != _REQUEST_ID for name, _ in found):
        found.append((_REQUEST_ID, id))
    return found


def _has_id(request: bytes) -> bool:
    """Return whether an encoded ModelInferRequest has an id, as far as its fields are in order.

    To add one copies all tensors, so a request with an id is left as it is.
    """
    at = 0
    for tag in b"\x0a\x12":  # the model's name and version: texts with a length
        if request[at : at + 1] == bytes([tag]):
            size, at = _number(request, at + 1)
            at += size
    return request[at : at + 1] == b"\x1a"


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that is encoded at a place, in five bytes or fewer, and the place behind it."""
    number = 0
    for shift in range(0, 35, 7):
        byte = message[at] if at < len(message) else 0
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            break
    return number, at


def _id_field(id: str) -> bytes:
    """Return the field `id` of an encoded ModelInferRequest."""
    value = id.encode()
    size, encoded = len(value), bytearray(b"\x1a")  # field 3, with a length
    while size > 127:
        encoded.append(size & 127 | 128)
        size >>= 7
    encoded.append(size)
    return bytes(encoded) + value


def _refuse(context: Any, error: grpc.aio.AioRpcError) -> None:
    context.set_code(error.code())
    context.set_details(error.details() or "")


class GrpcMethods:
    """The methods of the protocol, which Serve's proxy calls by their names. They take and return bytes.

    _grpc   set by the class that inherits
    """

    _grpc: GrpcForwarder


def _unary(name: str) -> Callable[..., Awaitable[Encoded]]:
    async def method(self: GrpcMethods, request: bytes, grpc_context: Any) -> Encoded:
        return await self._grpc.unary(name, request, grpc_context)

    method.__name__ = name
    return method


async def _stream(
    self: GrpcMethods, requests: AsyncIterator[bytes], grpc_context: Any
) -> AsyncIterator[Encoded]:
    async for each in self._grpc.stream(STREAMING, requests, grpc_context):
        yield each


for _name in UNARY:
    setattr(GrpcMethods, _name, _unary(_name))
setattr(GrpcMethods, STREAMING, _stream)
