"""The plain JSON of generate: members ↔ tensors and parameters.

A member named like an input of the model is that input; any other member is a parameter of the request.
A response has a member for each output. Shapes are not sent: they follow from the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from core.config import InputSpec, Signature
from core.errors import CoreError, invalid
from core.native.gather import joined
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Buffer, Tensor
from frontends.http.background import LARGE_BYTES
from frontends.http.codec.data_frame import SPLIT, read_split
from frontends.http.codec.json_tensor import filled as filled
from frontends.http.codec.json_tensor import read_tensor
from frontends.http.codec.json_text import MEMBERS, MOST_TEXT_BYTES, Elements, read_json
from frontends.http.codec.parameters import custom, typed
from frontends.http.native.infer_response import write_data
from frontends.shared.v2 import check_entries

_NESTED = "parameters"  # its members are treated like those beside it


def read(
    model: str, version: int, signature: Signature, body: Buffer, most_bytes: int
) -> InferenceRequest:
    """Return the request that a JSON object describes.

    version      from the path, -1 for the newest
    most_bytes   --http-max-input-size: limit for all inputs together
    Raises CoreError(INVALID) if the body is not such an object, if a value does not fit its input, and for a
    model with an input named "parameters".
    """
    if _NESTED in signature.inputs:
        raise invalid(f"Keyword '{_NESTED}' for nested schema also given as input tensor name")
    document = read_json(body, MEMBERS)
    if type(document) is not dict:
        raise invalid("failed to parse the request: attempt to get members for non-object")
    request = InferenceRequest(model, {}, model_version=version, id=_id(document, signature))
    nested = document.pop(_NESTED, {})
    if SPLIT in document and SPLIT not in signature.inputs:
        read_split(document.pop(SPLIT), request, signature, most_bytes)
    _read_members(document, request, signature, most_bytes)
    if type(nested) is not dict:
        raise invalid(
            f"Expected JSON object for keyword: '{_NESTED}': attempt to access JSON non-object as object"
        )
    try:
        _read_members(nested, request, signature, most_bytes)
    except CoreError as error:
        raise CoreError(error.kind, f"Converting keyword: '{_NESTED}': {error.message}") from None
    _check_size(request, most_bytes)
    return request


def _id(document: dict[str, Any], signature: Signature) -> str:
    """Return the member `id`, "" without one.

    If it is no text, return "" if the model has an input named "id"; otherwise raise CoreError(INVALID).
    """
    found = text_of("id", document.get("id", ""))
    if type(found) is str:
        return found
    if "id" in signature.inputs:
        return ""
    raise typed("id", "string")


def _read_members(
    members: Mapping[str, Any], request: InferenceRequest, signature: Signature, most_bytes: int
) -> None:
    """Write each member into the request: as the input of its name if the model has it, else as a parameter.

    Raises CoreError(INVALID) for a value that does not fit, and for an input that the request has already.
    """
    check_entries("members", members)
    for name, value in members.items():
        if (spec := signature.inputs.get(name)) is None:
            request.parameters[name] = custom(name, text_of(name, value))
        elif name in request.inputs:
            raise invalid(
                f"[request id: {request.id or '<id_unknown>'}] input '{name}' already exists in request"
            )
        else:
            batched = signature.max_batch_size > 0 and not spec.shape_tensor
            request.inputs[name] = read_input(spec, batched, value, most_bytes)


def text_of(name: str, value: Any) -> Any:
    """Return the str of an Elements that holds a string, any other value unchanged.

    Raises CoreError(INVALID) for a string of more than MOST_TEXT_BYTES.
    """
    if type(value) is not Elements or value.is_array:
        return value
    if value.text_bytes > MOST_TEXT_BYTES:
        raise invalid(
            f"'{name}' is a text of {value.text_bytes} bytes; {MOST_TEXT_BYTES} are the most beside inputs"
        )
    return str(value.characters(), "utf-8")


def read_input(spec: InputSpec, batched: bool, value: Any, most_bytes: int) -> Tensor:
    """Return the tensor of an input from a value, or from a list of values in row-major order.

    batched   whether the dimension of the batch, of any size, precedes those of `spec`
    Raises CoreError(INVALID) if no shape has that many values, and what `read_tensor` raises.
    """
    data = value if type(value) in (list, Elements) else [value]
    dims = (-1, *spec.dims) if batched else spec.dims
    shape = filled(dims, len(data))
    if shape is None:
        raise invalid(
            f"The schema can not convert input '{spec.name}' to tensor with proper shape: "
            f"{len(data)} values, shape {list(dims)}"
        )
    return read_tensor(spec.name, spec.dtype, shape, data, most_bytes)


def _check_size(request: InferenceRequest, most_bytes: int) -> None:
    size = sum(tensor.byte_size for tensor in request.inputs.values())
    if size > most_bytes:
        raise invalid(
            f"the inputs of the request have a byte_size ({size} bytes) that exceeds the maximum "
            f"allowed value of {most_bytes} bytes. Use --http-max-input-size to increase the limit."
        )


# Answers ------------------------------------------------------------------------


def write(response: InferenceResponse, before: bytes = b"", behind: bytes = b"") -> bytes:
    """Return the response as a JSON object: id, model, parameters and outputs side by side. Thread-safe.

    An output is a list in row-major order, or its one element. `before` and `behind` frame the object, so
    that a large one is copied once. Raises CoreError(INVALID) for FP16 and BF16.
    """
    members: dict[str, Buffer] = dict(_members(response))
    for name, value in response.parameters.items():
        members[name] = orjson.dumps(value)
    for tensor in response.outputs:
        text = write_data(tensor)
        members[tensor.name] = memoryview(text)[1:-1] if tensor.count == 1 else text
    parts: list[Buffer] = [before, b"{"]
    for name in sorted(members):
        parts += (orjson.dumps(name), b":", members[name], b",")
    parts[-1] = b"}"
    parts.append(behind)
    return joined(parts)


def _members(response: InferenceResponse) -> dict[str, bytes]:
    """Return the members of every response to one request, as JSON."""
    members = {"id": orjson.dumps(response.id)} if response.id else {}
    members["model_name"] = orjson.dumps(response.model_name)
    members["model_version"] = orjson.dumps(str(response.model_version))
    return members


def around_text(response: InferenceResponse) -> tuple[str, bytes, bytes] | None:
    """Return (name of the only output, what `write` writes before it, and behind it).

    Return None for a response with parameters, with other than one output, or whose output is named like a
    member that `write` adds, such as model_name.
    """
    if len(response.outputs) != 1 or response.has_parameters:
        return None
    members = _members(response)
    output = response.outputs[0].name
    if output in members:
        return None
    texts = {name: b"%b:%b" % (orjson.dumps(name), text) for name, text in members.items()}
    before = [texts[name] for name in sorted(texts) if name < output]
    behind = [texts[name] for name in sorted(texts) if name > output]
    begin = b"".join(each + b"," for each in before)
    end = b"".join(b"," + each for each in behind)
    return output, b"{%b%b:" % (begin, orjson.dumps(output)), end + b"}"


def takes_long(response: InferenceResponse) -> bool:
    """Return whether `write` takes more than a few milliseconds."""
    elements = sum(tensor.count for tensor in response.outputs)
    return elements > LARGE_BYTES // 16 or any(
        tensor.has_raw and tensor.byte_size > LARGE_BYTES for tensor in response.outputs
    )
