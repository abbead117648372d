"""GrpcSender: gRPC by grpcio, for TLS, compression, and builds without libnghttp2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc

from core_bench.load.senders import Lost, Marks, Refused, SequenceFields
from core_bench.model.address import Address
from core_bench.model.grpc_control import SERVICE, credentials
from core_bench.plan import Side
from core_bench.wire.grpc_infer import HEAD
from core_bench.wire.request import WireRequest
from frontends.grpc.protocol import messages

_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
_COMPRESSION = {
    "none": grpc.Compression.NoCompression,
    "gzip": grpc.Compression.Gzip,
    "deflate": grpc.Compression.Deflate,
}


class GrpcSender:
    """Calls share a channel; with --streaming, each slot keeps a stream that no other call uses."""

    def __init__(
        self,
        side: Side,
        address: Address,
        tls: bool,
        requests: Sequence[WireRequest],
        decoupled: bool,
    ):
        self._side, self._address, self._tls = side, address, tls
        self._requests, self._decoupled = requests, decoupled
        self._metadata = [(name.lower(), value) for name, value in side.headers]
        self._free: list[Any] = []
        self._channel: Any = None

    async def open(self) -> None:
        how: dict[str, Any] = {
            "options": _OPTIONS,
            "compression": _COMPRESSION[self._side.compression],
        }
        if self._tls:
            self._channel = grpc.aio.secure_channel(
                self._address.shown, credentials(self._side.tls), **how
            )
        else:
            self._channel = grpc.aio.insecure_channel(self._address.shown, **how)
        self._infer = self._channel.unary_unary(SERVICE + "ModelInfer")
        self._stream = self._channel.stream_stream(SERVICE + "ModelStreamInfer")

    async def close(self) -> None:
        for each in self._free:
            each.cancel()
        await self._channel.close()

    async def send(self, number: int, fields: SequenceFields, marks: Marks) -> None:
        message = _patched(self._requests[number], fields)[HEAD:]
        try:
            if self._side.streaming:
                await self._on_stream(message, marks)
            else:
                await self._infer(message, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            code = error.code()
            if code is grpc.StatusCode.UNAVAILABLE and "connect" in (error.details() or ""):
                raise Lost(f"cannot connect: {error.details()}") from None
            raise Refused(f"grpc {code.value[0]} {error.details()}") from None

    async def _on_stream(self, message: bytes, marks: Marks) -> None:
        while self._free and self._free[-1].done():  # the server has ended it
            self._free.pop()
        call = self._free.pop() if self._free else self._stream(metadata=self._metadata)
        try:
            await call.write(message)
            while True:
                data = await call.read()
                if data is grpc.aio.EOF:
                    raise Refused(f"grpc {(await call.code()).value[0]} {await call.details()}")
                found = messages.ModelStreamInferResponse.FromString(data)
                if found.error_message:
                    raise Refused(f"stream {found.error_message}")
                if found.infer_response.outputs:
                    marks.response()
                final = found.infer_response.parameters.get("triton_final_response")
                if not self._decoupled or (final is not None and final.bool_param):
                    break
        except BaseException:
            call.cancel()
            raise
        self._free.append(call)


def _patched(request: WireRequest, fields: SequenceFields) -> bytes:
    if not fields.id:
        return request.wire
    made = bytearray(request.wire)
    for at in range(10):
        more = 0x80 if at < 9 else 0
        made[request.id_at + at] = (fields.id >> (7 * at)) & 0x7F | more
    made[request.start_at], made[request.end_at] = fields.start, fields.end
    return bytes(made)
