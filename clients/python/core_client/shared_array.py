"""SharedArray: an array in shared memory, for one input or output of a request."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core_client.allocator import Allocator, Block

_DATATYPES = {
    "BOOL": "?",
    "UINT8": "u1",
    "UINT16": "u2",
    "UINT32": "u4",
    "UINT64": "u8",
    "INT8": "i1",
    "INT16": "i2",
    "INT32": "i4",
    "INT64": "i8",
    "FP16": "f2",
    "FP32": "f4",
    "FP64": "f8",
    "BF16": "u2",  # bit patterns: numpy has no such type
}
_NAMES = {np.dtype(code): name for name, code in _DATATYPES.items() if name != "BF16"}


def described(dtype: Any) -> tuple[str, np.dtype[Any]]:
    """Return the protocol's name of a datatype and the dtype of numpy.

    dtype   such a name, or anything that numpy accepts as one
    Raises TypeError for a dtype without a fixed size or without a name in the protocol.
    """
    if isinstance(dtype, str) and dtype in _DATATYPES:
        return dtype, np.dtype(_DATATYPES[dtype])
    found = np.dtype(dtype)
    if found not in _NAMES:
        raise TypeError(
            f"{found} is not a datatype of fixed size; use one of {', '.join(_DATATYPES)}, or share() and "
            "buffer() for BYTES"
        )
    return _NAMES[found], found


class HasClient(Protocol):
    """The part of a pool that a SharedArray uses."""

    client: Any


class Lease:
    """Owner of a block; frees the block when the Lease and all arrays over its bytes are garbage."""

    def __init__(self, allocator: Allocator, block: Block, byte_size: int):
        self._block = block
        self._allocator = allocator
        self.__array_interface__ = {
            "data": (block.segment.address + block.offset, False),
            "shape": (byte_size,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self) -> None:
        self._allocator.free(self._block)


class SharedArray:
    """An array that a pool made. One thread at a time.

    array       numpy over the shared bytes: write inputs into it, read outputs from it
    datatype, shape   those of the request; for BYTES `array` is flat and holds the wire form
    region, offset, byte_size   where the bytes are, in the words of the protocol
    """

    def __init__(
        self,
        pool: HasClient,
        block: Block,
        datatype: str,
        array: np.ndarray[Any, Any],
        shape: tuple[int, ...],
    ):
        self.datatype = datatype
        self.shape = shape
        self.region = block.segment.name
        self.offset = block.offset
        self.byte_size = array.nbytes
        self._array: np.ndarray[Any, Any] | None = array
        self._pool = pool  # keeps the pool open: garbage collection closes it

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """Return the array. Raises ValueError if it has been released."""
        if self._array is None:
            raise ValueError("this SharedArray has been released")
        return self._array

    def place(self, tensor: Any) -> Any:
        """Let `tensor`, tritonclient's InferInput or InferRequestedOutput, use these bytes; return `tensor`.

        The bytes are not used again while `tensor` exists, unless `release` is called. Raises ValueError
        after `release`.
        """
        _ = self.array  # not after release
        tensor.set_shared_memory(self.region, self.byte_size, self.offset)
        tensor.shared_array = self  # `pool.share(x).input("x")` keeps no other reference
        return tensor

    def input(self, name: str, shape: Iterable[int] | None = None) -> Any:
        """Return tritonclient's InferInput with these bytes, for the protocol of the pool's client.

        shape   if it differs from that of the array; needed for a `buffer` without a shape
        """
        found = self._protocol().InferInput
        return self.place(found(name, list(self.shape if shape is None else shape), self.datatype))

    def output(self, name: str) -> Any:
        """Return tritonclient's InferRequestedOutput with these bytes, for the protocol of the client."""
        return self.place(self._protocol().InferRequestedOutput(name))

    def texts(self, shape: Iterable[int] = (-1,)) -> np.ndarray[Any, Any]:
        """Return copies of the elements of BYTES as an object array of `bytes`.

        shape   that of the response; -1 reads up to the end of the bytes
        Raises ValueError if an element is cut or missing.
        """
        return decode(self.array.data.cast("B"), tuple(shape))

    def release(self) -> None:
        """Free the bytes as soon as no array over them is left; garbage collection does the same.

        Call it after the response has arrived: the server would write into the memory of another array.
        """
        self._array = None

    def __enter__(self) -> SharedArray:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _protocol(self) -> Any:
        """Return tritonclient.http or tritonclient.grpc, whichever has the client's class.

        Raises TypeError if the pool has no client, or one of another package.
        """
        found = type(self._pool.client).__module__
        for each in ("tritonclient.grpc", "tritonclient.http"):
            if found.startswith(each):
                return sys.modules.get(each) or import_module(each)
        raise TypeError(
            "the pool has no client of tritonclient, so the class of the tensor is unknown: give the pool "
            "a client, or use place()"
        )


def encode(array: npt.ArrayLike) -> bytes:
    """Return the wire form of text and bytes: before each its length in four bytes, little endian.

    Any other element becomes its text, as in tritonclient.
    """
    parts = []
    for element in np.asarray(array, dtype=object).ravel().tolist():
        is_bytes = isinstance(element, bytes | bytearray | memoryview)
        data = bytes(element) if is_bytes else str(element).encode()
        parts += [len(data).to_bytes(4, "little"), data]
    return b"".join(parts)


def decode(data: memoryview, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the elements of the wire form; bytes after the last element of `shape` are ignored.

    Raises ValueError if an element is cut or missing.
    """
    most = -1 if -1 in shape else int(np.prod(shape, dtype=np.int64))
    found: list[bytes] = []
    at = 0
    while at < len(data) and len(found) != most:
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if end > len(data):
            raise ValueError(
                f"element {len(found)} of BYTES ends after the {len(data)} bytes of the buffer"
            )
        found.append(bytes(data[at + 4 : end]))
        at = end
    if most > len(found):
        raise ValueError(f"found {len(found)} elements of BYTES; shape {shape} has {most}")
    array = np.empty(len(found), object)
    array[:] = found
    return array.reshape(shape)
