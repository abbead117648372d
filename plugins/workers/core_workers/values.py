"""Encode the arguments, results and errors of requests between workers as bytes.

The form is JSON in which {"object": …} stands for an object and {"bytes": …} for bytes in base64, so that
no key of a client is mistaken for a tag. Tuples become lists.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from core.errors import CoreError, Kind


def pack(value: Any) -> bytes:
    """Encode None, a bool, a number, a text, bytes, or lists, tuples and dicts (with text keys) of these."""
    return json.dumps(_tagged(value), separators=(",", ":")).encode()


def unpack(data: bytes) -> Any:
    """Return the value that `pack` has encoded; tuples have become lists, other bytes-like objects bytes."""
    return _untagged(json.loads(data))


def pack_error(error: CoreError) -> bytes:
    """Encode the kind and the message of an error as bytes."""
    return pack({"kind": error.kind.name, "message": error.message})


def unpack_error(data: bytes) -> CoreError:
    """Return the error that `pack_error` has encoded, without its cause."""
    value = unpack(data)
    return CoreError(Kind[value["kind"]], value["message"])


def _tagged(value: Any) -> Any:
    if isinstance(value, dict):
        return {"object": {key: _tagged(each) for key, each in value.items()}}
    if isinstance(value, list | tuple):
        return [_tagged(each) for each in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": b64encode(value).decode()}
    return value


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(each) for each in value]
    if isinstance(value, dict):
        if "bytes" in value:
            return b64decode(value["bytes"])
        return {key: _untagged(each) for key, each in value["object"].items()}
    return value
