"""Read a .params file, which tvm.runtime.save_param_dict writes, without TVM.

file ─► [params] ─► reading: weights by name, as arrays over the file.
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np

_LIST, _TENSOR = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F  # magic numbers
_HEAD = struct.Struct("<QQ")
_ABOUT = struct.Struct("<iiiBBH")  # device type, device number, dimensions, then the datatype
_KINDS = {0: "int", 1: "uint", 2: "float", 6: "bool"}
_BITS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64), "bool": (8,)}
_MOST_NAMES, _MOST_DIMS = 1_000_000, 64


def read_params(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return name → array, which the file backs. Raises ValueError with the reason for a damaged file."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")
    try:
        return _read(content)
    except struct.error:
        raise ValueError("it is truncated") from None


def _read(content: memoryview) -> dict[str, np.ndarray[Any, Any]]:
    magic, _ = _HEAD.unpack_from(content)
    if magic != _LIST:
        raise ValueError("it is no file of tvm.runtime.save_param_dict")
    place = _HEAD.size
    count = _number(content, place)
    place += 8
    if count > _MOST_NAMES:
        raise ValueError(f"it has {count} names")
    names = []
    for _ in range(count):
        size = _number(content, place)
        text = bytes(content[place + 8 : place + 8 + size])
        if len(text) < size:
            raise ValueError("it is truncated")
        names.append(text.decode("utf-8", "replace"))
        place += 8 + size
    if _number(content, place) != count:
        raise ValueError(f"it has {count} names for {_number(content, place)} arrays")
    place += 8
    found = {}
    for name in names:
        found[name], place = _array(content, place, name)
    return found


def _array(content: memoryview, place: int, name: str) -> tuple[np.ndarray[Any, Any], int]:
    """Return the array at a place, and the place after it."""
    magic, _ = _HEAD.unpack_from(content, place)
    _, _, rank, code, bits, lanes = _ABOUT.unpack_from(content, place + _HEAD.size)
    if magic != _TENSOR or not 0 <= rank <= _MOST_DIMS:
        raise ValueError(f"it is damaged at array '{name}'")
    kind = _KINDS.get(code, "")
    if lanes != 1 or bits not in _BITS.get(kind, ()):
        raise ValueError(
            f"array '{name}' has the datatype {code}/{bits}/{lanes}, which numpy lacks"
        )
    dtype = np.dtype("bool" if kind == "bool" else f"{kind}{bits}")
    place += _HEAD.size + _ABOUT.size
    shape = struct.unpack_from(f"<{rank}q", content, place)
    place += 8 * rank
    size = _number(content, place)
    place += 8
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"array '{name}' of shape {list(shape)} has {size} bytes")
    data = content[place : place + size]
    if len(data) < size:
        raise ValueError(f"it is truncated at array '{name}'")
    return np.frombuffer(data, dtype).reshape(shape), place + size


def _number(content: memoryview, place: int) -> int:
    return int(struct.unpack_from("<Q", content, place)[0])
