"""Values as bytes: what a worker asks, answers or refuses.

JSON, in which {"object": …} stands for an object and {"bytes": …} for bytes in base64: so that no key
that a client has chosen can be taken for something else. Tuples come back as lists.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from core.errors import CoreError, Kind


def pack(value: Any) -> bytes:
    """The bytes of None, a bool, a number, a text, bytes, or lists and dicts of such values."""
    return json.dumps(_tagged(value), separators=(",", ":")).encode()


def unpack(data: bytes) -> Any:
    """The value that `pack` was given."""
    return _untagged(json.loads(data))


def pack_error(error: CoreError) -> bytes:
    """An answer that is an error."""
    return pack({"kind": error.kind.name, "message": error.message})


def unpack_error(data: bytes) -> CoreError:
    """The error that `pack_error` was given."""
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
