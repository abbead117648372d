"""The wire form of BYTES tensors: for each element a little-endian uint32 length, then its bytes.

core has a compiled form of this. Child processes run without core, so this one is plain Python.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

_LENGTH = struct.Struct("<I")


def encode(array: np.ndarray[Any, Any]) -> bytes:
    """Encode the elements in row-major order: bytes as they are, str as UTF-8, other types as str()."""
    parts = []
    pack = _LENGTH.pack
    for item in array.ravel().tolist():
        if type(item) is not bytes:
            item = as_bytes(item)
        parts.append(pack(len(item)))
        parts.append(item)
    return b"".join(parts)


def decode(data: Any, count: int) -> np.ndarray[Any, Any]:
    """Copy the `count` elements in `data` into an object array. Raises ValueError if they do not fit."""
    array = np.empty(count, dtype=object)
    view = memoryview(data)
    end = len(view)
    at = 0
    unpack = _LENGTH.unpack_from
    for i in range(count):
        start = at + 4
        at = start + unpack(view, at)[0] if start <= end else end + 1
        if at > end:
            raise ValueError(f"BYTES tensor of {end} bytes ends within element {i} of {count}")
        array[i] = bytes(view[start:at])
    if at != end:
        raise ValueError(f"BYTES tensor has {end - at} bytes after its {count} elements")
    return array


def as_bytes(item: Any) -> bytes:
    """Return one element of an object array as bytes."""
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    return str(item).encode()


def speakable(text: str) -> str:
    """Replace halves of surrogate pairs by `?`: UTF-8 cannot encode them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def serialize_byte_tensor(input_tensor: np.ndarray[Any, Any]) -> bytes | tuple[()] | None:
    """Return the elements of an object or bytes array as one bytes object, as Triton's helper of that name.

    Return () for an array without elements, None for an array of another type.
    """
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype != object and input_tensor.dtype.kind != "S":
        return None
    return encode(input_tensor)


def deserialize_bytes_tensor(encoded_tensor: bytes) -> np.ndarray[Any, Any]:
    """Decode the result of `serialize_byte_tensor` as a flat object array.

    Raises struct.error if it ends early.
    """
    found = []
    at = 0
    while at < len(encoded_tensor):
        (length,) = _LENGTH.unpack_from(encoded_tensor, at)
        (item,) = struct.unpack_from(f"<{length}s", encoded_tensor, at + 4)
        found.append(item)
        at += 4 + length
    array = np.empty(len(found), dtype=object)
    array[:] = found
    return array
