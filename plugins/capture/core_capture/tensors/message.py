"""InferMessage: a request or a response of the v2 protocol, whatever form it came in."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core import dtypes

Array = np.ndarray[Any, Any]

DTYPES: Mapping[str, np.dtype[Any]] = {
    each.name: each.numpy for each in dtypes.ALL if each is not dtypes.BYTES
}
"""Those of elements with a fixed size. BF16 has bit patterns of 16 bits."""


class Unreadable(ValueError):
    """A message that is no inference request or response of the v2 protocol: its text says why."""


@dataclass(slots=True)
class TensorValue:
    """One tensor of a message.

    raw          little endian, row-major; BYTES have a length of four bytes before each element; None if its
                 data is elsewhere, in shared memory of the client
    parameters   of this tensor in the message
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    raw: bytes | None
    parameters: dict[str, Any] = field(default_factory=dict)

    def array(self) -> Array:
        """Return the elements in their shape: bytes objects for BYTES, FP32 for BF16. Raises Unreadable."""
        if self.raw is None:
            raise Unreadable(f"tensor '{self.name}' is in shared memory")
        count = math.prod(self.shape)
        if self.datatype == "BYTES":
            found = unpack(self.raw)
            if len(found) != count:
                raise self._wrong(f"{len(found)} strings")
            strings = np.empty(count, object)
            strings[:] = found
            return strings.reshape(self.shape)
        if (dtype := DTYPES.get(self.datatype)) is None:
            raise Unreadable(f"tensor '{self.name}' has the unknown datatype '{self.datatype}'")
        if len(self.raw) != count * dtype.itemsize:
            raise self._wrong(f"{len(self.raw)} bytes")
        if self.datatype == "BF16":
            bits = np.frombuffer(self.raw, np.uint16).astype(np.uint32) << 16
            return bits.view(np.float32).reshape(self.shape)
        return np.frombuffer(self.raw, dtype).reshape(self.shape)

    def _wrong(self, what: str) -> Unreadable:
        return Unreadable(f"tensor '{self.name}' of shape {list(self.shape)} has {what}")


@dataclass(slots=True)
class InferMessage:
    """A request, or one response.

    tensors   inputs of a request, outputs of a response
    wanted    requested outputs: name → parameters
    """

    model: str = ""
    version: str = ""
    id: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    tensors: list[TensorValue] = field(default_factory=list)
    wanted: dict[str, dict[str, Any]] = field(default_factory=dict)


def pack(strings: Sequence[bytes]) -> bytes:
    """Return the binary form of BYTES."""
    return b"".join(struct.pack("<I", len(each)) + each for each in strings)


def unpack(raw: bytes) -> list[bytes]:
    """Return the elements of the binary form of BYTES. Raises Unreadable."""
    found, at = [], 0
    while at < len(raw):
        if at + 4 > len(raw):
            raise Unreadable("a tensor of strings ends within a length")
        (size,) = struct.unpack_from("<I", raw, at)
        at += 4
        if at + size > len(raw):
            raise Unreadable("a tensor of strings ends within a string")
        found.append(raw[at : at + size])
        at += size
    return found


def raw_of(datatype: str, elements: Sequence[Any], name: str) -> bytes:
    """Return the binary form of elements in one list. Raises Unreadable for elements that do not fit."""
    if datatype == "BYTES":
        texts = [
            each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each
            for each in elements
        ]
        if not all(isinstance(each, bytes) for each in texts):
            raise Unreadable(f"tensor '{name}' of BYTES has elements that are no strings")
        return pack(texts)
    if (dtype := DTYPES.get(datatype)) is None:
        raise Unreadable(f"tensor '{name}' has the unknown datatype '{datatype}'")
    try:
        if datatype == "BF16":
            bits = np.array(elements, np.float32).view(np.uint32)
            return (bits >> 16).astype(np.uint16).tobytes()
        return np.array(elements, dtype).tobytes()
    except (OverflowError, TypeError, ValueError) as error:
        raise Unreadable(f"tensor '{name}' does not fit {datatype}: {error}") from None
