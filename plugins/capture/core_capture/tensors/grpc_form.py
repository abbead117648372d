"""Messages of the v2 protocol over gRPC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from core_capture.tensors.message import InferMessage, TensorValue, Unreadable, pack, raw_of, unpack
from frontends.grpc.protocol import messages

INFER = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"

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


def encode_request(request: InferMessage) -> bytes:
    """Return a ModelInferRequest. Raises Unreadable for parameters that gRPC has no form for."""
    made: Any = messages.ModelInferRequest(
        model_name=request.model, model_version=request.version, id=request.id
    )
    _set(made.parameters, request.parameters)
    for each in request.tensors:
        tensor = made.inputs.add(name=each.name, datatype=each.datatype, shape=each.shape)
        _set(tensor.parameters, each.parameters)
        if each.raw is not None:
            made.raw_input_contents.append(each.raw)
    for name, parameters in request.wanted.items():
        _set(made.outputs.add(name=name).parameters, parameters)
    data: bytes = made.SerializeToString()
    return data


def _set(target: Any, parameters: dict[str, Any]) -> None:
    """Set parameters. Those that are only about the form of JSON are left out."""
    for name, value in parameters.items():
        if name in ("binary_data", "binary_data_output"):
            continue
        if isinstance(value, bool):
            target[name].bool_param = value
        elif isinstance(value, int):
            target[name].int64_param = value
        elif isinstance(value, float):
            target[name].double_param = value
        elif isinstance(value, str):
            target[name].string_param = value
        else:
            raise Unreadable(f"parameter '{name}' of {type(value).__name__} has no form in gRPC")


def redacted(
    path: str, data: bytes, is_answer: bool, matches: Callable[[str], bool], found: set[str]
) -> bytes:
    """Return a message of ModelInfer or ModelStreamInfer with blank elements in the tensors that match.

    found   gets the names of these tensors
    Raises Unreadable, also for other methods.
    """
    kinds = {
        (INFER, False): messages.ModelInferRequest,
        (STREAM, False): messages.ModelInferRequest,
        (INFER, True): messages.ModelInferResponse,
        (STREAM, True): messages.ModelStreamInferResponse,
    }
    if (kind := kinds.get((path, is_answer))) is None:
        raise Unreadable(f"messages of {path} have no tensors")
    message: Any = kind()
    _parse(message, data)
    found_here = {each.name for each in _tensors_of(message) if matches(each.name)}
    if not found_here:
        return data
    found |= found_here
    holder = message.infer_response if kind is messages.ModelStreamInferResponse else message
    raws = holder.raw_output_contents if is_answer else holder.raw_input_contents
    at = 0
    for tensor in _tensors_of(message):
        own = "shared_memory_region" not in tensor.parameters and at < len(raws)
        if tensor.name in found_here:
            _blank(tensor)
            if own:
                strings = tensor.datatype == "BYTES"
                raws[at] = pack([b""] * len(unpack(raws[at]))) if strings else bytes(len(raws[at]))
        at += own
    if at != len(raws):
        raise Unreadable(f"a message has {len(raws)} raw contents for {at} tensors")
    whole: bytes = message.SerializeToString()
    return whole


def _tensors_of(message: Any) -> Any:
    if isinstance(message, messages.ModelInferRequest):
        return message.inputs
    return getattr(message, "infer_response", message).outputs


def _blank(tensor: Any) -> None:
    for field, elements in tensor.contents.ListFields():
        blank = type(elements[0])()
        count = len(elements)
        tensor.contents.ClearField(field.name)
        getattr(tensor.contents, field.name).extend([blank] * count)


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
