"""Numbers of tensors that are not packed: each has a field of its own, as some senders write them.

A PackedTensor does not have such numbers, nor their places among packed ones. protobuf packs them first.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from core.errors import CoreError, invalid
from frontend_tfserving.rpc import messages
from frontend_tfserving.rpc.reading import away, read
from frontends.grpc.call import GrpcCall
from frontends.grpc.native.entries import MessageShape

MOST_GROWTH = 8
"""Bytes that protobuf needs for a byte of numbers: 64 bits for a varint of one byte."""

COPIES = 3
"""Of texts and contents, while numbers beside them are packed: two messages, and the bytes between them."""

_UNBOUNDED = 2**62


async def read_tensors(data: bytes, call: GrpcCall) -> messages.PackedPredictRequest:
    """Return the request of Predict in `data`, its numbers packed in their order. Event loop only.

    Raises CoreError(INVALID) and MemoryExhausted, as `read`.
    """
    request = await read(messages.PackedPredictRequest, data, call)
    if await away(len(data), all_are_packed, request, data):
        return request
    size = await away(len(data), growth, request, data)
    call.hold(size, "the unpacked numbers of a request")
    try:
        return await away(len(data), packed, request, data)
    finally:
        call.release(size)


def growth(request: messages.PackedPredictRequest, data: bytes) -> int:
    """Return the bytes that `packed` needs at most for a request, beside the request itself."""
    tensors = request.inputs.values()
    copied = sum(len(each.tensor_content) + sum(map(len, each.string_val)) for each in tensors)
    return COPIES * copied + MOST_GROWTH * (len(data) - copied)


def all_are_packed(request: messages.PackedPredictRequest, data: bytes) -> bool:
    """Return whether the tensors of a request have all fields of its bytes; else protobuf must pack them.

    The fields are counted. protobuf would make an object of each field that a PackedTensor does not have.
    """
    fields = sum(map(_fields, request.inputs.values()))
    return _shape().excess(data, _UNBOUNDED, _UNBOUNDED, fields) is None


@cache
def _shape() -> MessageShape:
    tensors = (messages.PackedTensor.DESCRIPTOR.full_name,)
    return MessageShape(messages.PackedPredictRequest.DESCRIPTOR, tensors)


def _fields(tensor: messages.PackedTensor) -> int:
    """Return the number of fields of an encoded tensor."""
    count = 0
    for field, value in tensor.ListFields():
        single = type(value) in (int, bytes) or field.name == "tensor_shape"
        count += 1 if single else len(value)
    return count


def packed(request: messages.PackedPredictRequest, data: bytes) -> messages.PackedPredictRequest:
    """Return the request in `data` with its numbers packed. Thread-safe.

    request   what a PackedPredictRequest has of the bytes
    Raises CoreError(INVALID), which names the first input that is no TensorProto.
    """
    try:
        plain = messages.PredictRequest.FromString(data)
    except DecodeError:
        raise _damaged(request) from None
    plain.DiscardUnknownFields()
    return messages.PackedPredictRequest.FromString(plain.SerializeToString())


def _damaged(request: messages.PackedPredictRequest) -> CoreError:
    for name, tensor in request.inputs.items():
        if not _is_tensor(tensor):
            return invalid(f"input '{name}' is no TensorProto")
    return invalid("the request is no tensorflow.serving.PredictRequest")


def _is_tensor(tensor: Any) -> bool:
    try:
        messages.TensorProto.FromString(tensor.SerializeToString())
    except DecodeError:
        return False
    return True
