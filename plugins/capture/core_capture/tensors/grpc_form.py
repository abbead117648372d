"""Messages of the v2 protocol over gRPC."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from core_capture.tensors.message import InferMessage, TensorValue, Unreadable, raw_of
from frontends.grpc.protocol import messages

# Of each datatype without raw contents: the field of InferTensorContents with its elements.
_CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


def decode_request(data: bytes) -> InferMessage:
    """Return the request in a ModelInferRequest. Raises Unreadable."""
    found: Any = messages.ModelInferRequest()
    _parse(found, data)
    made = _message(found, found.inputs, found.raw_input_contents)
    made.wanted = {each.name: _parameters(each.parameters) for each in found.outputs}
    return made


def decode_response(data: bytes) -> InferMessage:
    """Return the response in a ModelInferResponse. Raises Unreadable."""
    found: Any = messages.ModelInferResponse()
    _parse(found, data)
    return _message(found, found.outputs, found.raw_output_contents)


def decode_stream_response(data: bytes) -> InferMessage:
    """Return the response in a ModelStreamInferResponse. Raises Unreadable, also for an error."""
    found: Any = messages.ModelStreamInferResponse()
    _parse(found, data)
    if found.error_message:
        raise Unreadable(f"an error: {found.error_message}")
    response = found.infer_response
    return _message(response, response.outputs, response.raw_output_contents)


def _parse(message: Any, data: bytes) -> None:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise Unreadable(f"a message is no {type(message).__name__}: {error}") from None


def _message(found: Any, tensors: Any, raws: Any) -> InferMessage:
    made = InferMessage(
        found.model_name, found.model_version, found.id, _parameters(found.parameters)
    )
    left = list(raws)
    for each in tensors:
        parameters = _parameters(each.parameters)
        shape = tuple(each.shape)
        raw: bytes | None = None
        if "shared_memory_region" in parameters:
            pass
        elif left:
            raw = left.pop(0)
        else:
            raw = _contents(each, shape)
        made.tensors.append(TensorValue(each.name, each.datatype, shape, raw, parameters))
    return made


def _contents(tensor: Any, shape: tuple[int, ...]) -> bytes | None:
    if (field := _CONTENTS.get(tensor.datatype)) is None:
        raise Unreadable(f"tensor '{tensor.name}' of {tensor.datatype} has no raw contents")
    elements = list(getattr(tensor.contents, field))
    if not elements and 0 not in shape:
        return None  # an output whose data is elsewhere
    return raw_of(tensor.datatype, elements, tensor.name)


def _parameters(found: Any) -> dict[str, Any]:
    return {
        name: getattr(each, each.WhichOneof("parameter_choice") or "string_param")
        for name, each in found.items()
    }
