"""Messages of the v2 protocol over HTTP: JSON, with binary tensors behind it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from core_capture.tensors.message import InferMessage, TensorValue, Unreadable, raw_of

JSON_SIZE = "Inference-Header-Content-Length"
_BINARY_SIZE = "binary_data_size"
_MOST_UNPACKED = 256 << 20  # bytes: a small body may unpack to a thousand times its size


def value_of(fields: Iterable[tuple[str, str]], name: str) -> str | None:
    """Return the value of a header field, whatever its case; None if it is absent."""
    for key, value in fields:
        if key.lower() == name.lower():
            return value
    return None


def unpacked(fields: Iterable[tuple[str, str]], body: bytes) -> bytes:
    """Return a body without its Content-Encoding. Raises Unreadable for an unknown or a wrong one."""
    encoding = (value_of(fields, "Content-Encoding") or "identity").lower()
    if encoding == "identity":
        return body
    if encoding not in ("gzip", "deflate"):
        raise Unreadable(f"a body has the Content-Encoding '{encoding}'")
    try:
        # 32: zlib or gzip, as the first bytes say; a body of `deflate` may also be without a head.
        return _inflated(body, 32 + zlib.MAX_WBITS)
    except zlib.error:
        pass
    try:
        return _inflated(body, -zlib.MAX_WBITS)
    except zlib.error as error:
        raise Unreadable(f"a body is no {encoding}: {error}") from None


def _inflated(body: bytes, window: int) -> bytes:
    """Return the bytes in a compressed body. Raises zlib.error, or Unreadable for too many bytes."""
    one = zlib.decompressobj(window)
    found = one.decompress(body, _MOST_UNPACKED + 1)
    if len(found) > _MOST_UNPACKED:
        raise Unreadable(f"a body unpacks to more than {_MOST_UNPACKED} bytes")
    if not one.eof:
        raise zlib.error("it is incomplete")
    return found


def decode_http(fields: Sequence[tuple[str, str]], body: bytes) -> InferMessage:
    """Return the request or response in a body. Raises Unreadable.

    fields   header fields of the body
    """
    body = unpacked(fields, body)
    size = value_of(fields, JSON_SIZE)
    if size is None:
        text, binary = body, b""
    elif size.isdecimal() and int(size) <= len(body):
        text, binary = body[: int(size)], body[int(size) :]
    else:
        raise Unreadable(f"{JSON_SIZE} is '{size}', and the body has {len(body)} bytes")
    document = _object(text)
    found = InferMessage(
        str(document.get("model_name", "")),
        str(document.get("model_version", "")),
        str(document.get("id", "")),
        _parameters(document),
    )
    is_response = "model_name" in document
    at = 0
    for each in document.get("outputs" if is_response else "inputs", ()):
        tensor, used = _tensor(each, binary[at:])
        found.tensors.append(tensor)
        at += used
    if not is_response:
        for each in document.get("outputs", ()):
            found.wanted[str(each.get("name", ""))] = _parameters(each)
    return found


def encode_http(request: InferMessage) -> tuple[int, bytes]:
    """Return the size of the JSON, and the body of a request with binary tensors.

    Outputs are wanted in binary, too. Raises Unreadable for parameters that JSON cannot hold.
    """
    inputs, binary = [], []
    for each in request.tensors:
        parameters = dict(each.parameters)
        if each.raw is not None:
            parameters[_BINARY_SIZE] = len(each.raw)
            binary.append(each.raw)
        row = {"name": each.name, "datatype": each.datatype, "shape": list(each.shape)}
        inputs.append({**row, "parameters": parameters})
    document: dict[str, Any] = {"inputs": inputs}
    document["parameters"] = {**request.parameters, "binary_data_output": True}
    if request.id:
        document["id"] = request.id
    if request.wanted:
        document["outputs"] = [
            {"name": name, "parameters": {**parameters, "binary_data": True}}
            for name, parameters in request.wanted.items()
        ]
    try:
        text = orjson.dumps(document)
    except TypeError as error:
        raise Unreadable(f"a parameter has no form in JSON: {error}") from None
    return len(text), b"".join((text, *binary))


def _object(text: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(text)
    except ValueError as error:
        raise Unreadable(f"a body is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise Unreadable("a body is no JSON object")
    for name in ("inputs", "outputs"):
        rows = document.get(name, [])
        if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
            raise Unreadable(f"'{name}' of a body is no list of objects")
    if not {"inputs", "outputs", "model_name"} & document.keys():
        raise Unreadable("a body has no tensors")
    return document


def _parameters(document: dict[str, Any]) -> dict[str, Any]:
    found = document.get("parameters", {})
    if not isinstance(found, dict):
        raise Unreadable("'parameters' is no object")
    return dict(found)


def _tensor(found: dict[str, Any], binary: bytes) -> tuple[TensorValue, int]:
    """Return a tensor, and how many of the bytes of `binary` are its own."""
    name, datatype, shape = str(found.get("name", "")), found.get("datatype"), found.get("shape")
    if not isinstance(datatype, str) or not isinstance(shape, list):
        raise Unreadable(f"tensor '{name}' has no datatype or no shape")
    if not all(isinstance(each, int) for each in shape):
        raise Unreadable(f"the shape of tensor '{name}' has other elements than numbers")
    parameters = _parameters(found)
    size = parameters.pop(_BINARY_SIZE, None)
    raw: bytes | None
    if size is not None:
        if not isinstance(size, int) or not 0 <= size <= len(binary):
            raise Unreadable(f"tensor '{name}' has {size} bytes, and {len(binary)} are left")
        return TensorValue(name, datatype, tuple(shape), binary[:size], parameters), size
    if "data" not in found:
        return TensorValue(name, datatype, tuple(shape), None, parameters), 0
    raw = raw_of(datatype, list(_flat(found["data"])), name)
    return TensorValue(name, datatype, tuple(shape), raw, parameters), 0


def _flat(data: Any) -> Iterable[Any]:
    if isinstance(data, list):
        for each in data:
            yield from _flat(each)
    else:
        yield data
