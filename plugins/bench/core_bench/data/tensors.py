"""Value: one input tensor of a request, in the binary form of the v2 protocol."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core import dtypes
from core.errors import invalid

DTYPES: dict[str, np.dtype[Any]] = {
    each.name: each.numpy for each in dtypes.ALL if each is not dtypes.BYTES
}
"""Those of elements with a fixed size."""


@dataclass(frozen=True)
class Value:
    """A tensor.

    shape   with the batch dimension, if the model has one
    raw     little endian, row-major; BYTES have a length of four bytes before each element
    """

    datatype: str
    shape: tuple[int, ...]
    raw: bytes

    def elements(self) -> list[Any]:
        """Return the elements in one list, as JSON has them. Raises CoreError for text that is no UTF-8."""
        if self.datatype == "BYTES":
            try:
                return [each.decode() for each in unpack(self.raw)]
            except UnicodeDecodeError:
                raise invalid("JSON cannot hold strings that are no UTF-8; use binary") from None
        if self.datatype == "BF16":
            bits = np.frombuffer(self.raw, np.uint16).astype(np.uint32) << 16
            return list(bits.view(np.float32).tolist())
        return list(np.frombuffer(self.raw, DTYPES[self.datatype]).tolist())

    def array(self) -> np.ndarray[Any, Any]:
        """Return a numpy array: of objects for BYTES, of bit patterns for BF16."""
        if self.datatype == "BYTES":
            made = np.empty(math.prod(self.shape), object)
            made[:] = unpack(self.raw)
            return made.reshape(self.shape)
        return np.frombuffer(self.raw, DTYPES[self.datatype]).reshape(self.shape)


def pack(strings: Sequence[bytes]) -> bytes:
    """Return the binary form of BYTES."""
    return b"".join(struct.pack("<I", len(each)) + each for each in strings)


def unpack(raw: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(raw):
        (size,) = struct.unpack_from("<I", raw, at)
        found.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def size_error(datatype: str, dims: Sequence[int], raw: bytes) -> str:
    """Return the size of a binary form that has another number of elements than `dims`; "" if it fits."""
    if datatype == "BYTES":
        count, rest = len(unpack(raw)), 0
    else:
        count, rest = divmod(len(raw), dtype_of(datatype).itemsize)
    if rest:
        return f"{len(raw)} bytes"
    return "" if count == math.prod(dims) else f"{count} elements"


def dtype_of(datatype: str) -> np.dtype[Any]:
    """Raises CoreError for a datatype that the v2 protocol does not have."""
    if datatype not in DTYPES:
        raise invalid(f"datatype '{datatype}' is unknown to core bench")
    return DTYPES[datatype]


def from_numbers(datatype: str, numbers: Any, what: str) -> bytes:
    """Return the binary form of numbers or strings in lists. Raises CoreError if they do not fit."""
    flat = list(_flat(numbers))
    if datatype == "BYTES":
        if not all(isinstance(each, str) for each in flat):
            raise invalid(f"{what} is BYTES, and has elements that are no strings")
        return pack([each.encode() for each in flat])
    dtype = dtype_of(datatype)
    if not all(isinstance(each, (int, float)) for each in flat):
        raise invalid(f"{what} is {datatype}, and has elements that are no numbers")
    if datatype == "BF16":
        bits = np.array(flat, np.float32).view(np.uint32)
        return (bits >> 16).astype(np.uint16).tobytes()
    try:
        if dtype.kind in "iu" and any(each != int(each) for each in flat):
            raise OverflowError("a fraction")
        return np.array(flat, dtype).tobytes()
    except (OverflowError, ValueError) as error:
        raise invalid(f"{what} does not fit {datatype}: {error}") from None


def _flat(numbers: Any) -> Any:
    if isinstance(numbers, list):
        for each in numbers:
            yield from _flat(each)
    else:
        yield numbers
