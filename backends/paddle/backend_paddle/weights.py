"""Compare the file of weights with its program, without Paddle: Paddle itself trusts their sizes.

A file has the weights one after another, in the order of their names. Each is (numbers in little endian):

    u32 0, u64 levels, (u64 bytes, bytes) for each level, u32 0, i32 bytes of TensorDesc, TensorDesc, elements
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from backend_paddle.messages import TensorDesc
from backend_paddle.tensors import TYPES, Weight

_SIZES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int16": 2,
    "uint16": 2,
    "float16": 2,
    "bfloat16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}
_MOST_DESC_BYTES, _MOST_LEVELS = 1 << 16, 64  # some bytes in reality


def check_weights(path: Path, expected: Mapping[str, Weight]) -> None:
    """Compare the weights in a file with those of the program.

    The elements are not read. Raises ValueError with the reason if the file is damaged, or another model's.
    """
    with path.open("rb") as file:
        found = list(_weights(file, path.stat().st_size))
    if len(found) != len(expected):
        raise ValueError(f"it has {len(found)} weights, the program {len(expected)}")
    for (name, wanted), weight in zip(sorted(expected.items()), found, strict=True):
        if wanted.type != weight.type:
            raise ValueError(
                f"its weight in the place of '{name}' is of type {weight.type}, that of the program of type "
                f"{wanted.type}"
            )
        known = -1 not in wanted.dims
        if known and math.prod(wanted.dims) != math.prod(weight.dims):
            raise ValueError(
                f"its weight in the place of '{name}' has shape {list(weight.dims)}, that of the program "
                f"{list(wanted.dims)}"
            )


def _weights(file: BinaryIO, size: int) -> Iterator[Weight]:
    """Yield the weights of a file. Raises ValueError if it does not end after one."""
    while (start := file.tell()) < size:
        try:
            found = _weight(file)
        except struct.error:
            raise ValueError(f"it ends within a weight, after {size} bytes") from None
        if file.tell() > size:
            raise ValueError(
                f"it ends after {size} bytes, its weight at byte {start} after {file.tell()}"
            )
        yield found


def _weight(file: BinaryIO) -> Weight:
    """Read the head of a weight, and go to its end.

    Raises ValueError for one that cannot be, struct.error for one that ends too early.
    """
    version, levels = _numbers(file, "<IQ")
    if version or levels > _MOST_LEVELS:
        raise ValueError("it is no file of weights in the format of Paddle")
    for _ in range(levels):
        _skip(file, _numbers(file, "<Q")[0])
    version, length = _numbers(file, "<Ii")
    if version or not 0 <= length <= _MOST_DESC_BYTES:
        raise ValueError("it is no file of weights in the format of Paddle")
    desc = TensorDesc()
    try:
        desc.ParseFromString(file.read(length))
    except Exception as error:  # its class differs between implementations of Protocol Buffers
        raise ValueError(str(error)) from None
    found = Weight(TYPES.get(desc.data_type, f"type {desc.data_type}"), tuple(desc.dims))
    if found.type not in _SIZES or any(each < 0 for each in found.dims):
        raise ValueError(f"it has a weight of type {found.type} and shape {list(found.dims)}")
    _skip(file, _SIZES[found.type] * math.prod(found.dims))
    return found


def _skip(file: BinaryIO, count: int) -> None:
    try:
        file.seek(count, 1)
    except (OSError, OverflowError, ValueError):  # no file is so long
        raise ValueError(f"it has a part of {count} bytes at byte {file.tell()}") from None


def _numbers(file: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))
