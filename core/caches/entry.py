"""Packs responses into bytes, for caches outside of this process.

    magic (4 bytes) · length of the head (uint32, little endian) · head · the tensors' wire bytes

The head is JSON: for each tensor [name, datatype, shape, bytes].
"""

from __future__ import annotations

import math
import struct

import orjson

from core import dtypes
from core.native import strings
from core.native.gather import joined
from core.tensor import Tensor

_MAGIC = b"cre1"
_START = struct.Struct("<4sI")
_DTYPES = {dtype.name: dtype for dtype in dtypes.ALL}


def pack(outputs: list[Tensor]) -> bytes:
    """Return the bytes of an entry with a response's outputs, in the form above."""
    raws = [memoryview(tensor.raw).cast("B") for tensor in outputs]
    head = orjson.dumps(
        [
            [tensor.name, tensor.dtype.name, list(tensor.shape), raw.nbytes]
            for tensor, raw in zip(outputs, raws, strict=True)
        ]
    )
    return joined([_START.pack(_MAGIC, len(head)), head, *raws])


def unpack(data: bytes) -> list[Tensor]:
    """Return the outputs that `pack` packed; they are views of `data`.

    Raises ValueError for bytes that `pack` has not made: other programs may write to an external cache.
    """
    if len(data) < _START.size:
        raise ValueError(f"{len(data)} bytes are no entry")
    magic, length = _START.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError(f"an entry begins with {_MAGIC!r}, found {magic!r}")
    start = _START.size + length
    view = memoryview(data)
    try:
        outputs = []
        for name, datatype, shape, size in orjson.loads(view[_START.size : start]):
            dtype = _DTYPES[datatype]
            raw = view[start : start + size]
            start += size
            _check(name, dtype, shape, raw, size)
            outputs.append(Tensor(name, dtype, tuple(shape), raw=raw))
    except (TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"an entry with a wrong head: {error!r}") from error
    if start != len(data):
        raise ValueError(f"an entry of {start} bytes has {len(data)}")
    return outputs


def _check(name: str, dtype: dtypes.DataType, shape: list[int], raw: memoryview, size: int) -> None:
    if not isinstance(name, str) or any(type(each) is not int or each < 0 for each in shape):
        raise ValueError(f"an entry with a tensor {name!r} of shape {shape}")
    if raw.nbytes != size or (dtype.byte_size and size != math.prod(shape) * dtype.byte_size):
        raise ValueError(f"an entry whose tensor '{name}' has {raw.nbytes} bytes")
    if not dtype.byte_size:
        try:
            strings.decode(raw, math.prod(shape))
        except Exception as error:
            raise ValueError(f"an entry whose tensor '{name}' is no BYTES: {error}") from error
