"""SharedArray: an array in memory that the server has too, for one input or output of a request."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.client.shelf import Block, Shelf

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
    """Name of a datatype in requests, and what numpy calls it.

    dtype   such a name, or anything that numpy takes
    Raises TypeError for one that has no fixed size or that the protocol does not have.
    """
    if isinstance(dtype, str) and dtype in _DATATYPES:
        return dtype, np.dtype(_DATATYPES[dtype])
    found = np.dtype(dtype)
    if found not in _NAMES:
        raise TypeError(
            f"{found} is no datatype with a size of its own; there are {', '.join(_DATATYPES)}, and "
            "share() and room() for BYTES"
        )
    return _NAMES[found], found


class HasClient(Protocol):
    """What a SharedArray knows of its pool."""

    client: Any


class Lease:
    """Who has a block. It goes back to the shelf when this and all arrays over its bytes are gone."""

    def __init__(self, shelf: Shelf, block: Block, byte_size: int):
        self._block = block
        self._shelf = shelf
        self.__array_interface__ = {
            "data": (block.segment.address + block.offset, False),
            "shape": (byte_size,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self) -> None:
        self._shelf.put_back(self._block)


class SharedArray:
    """Made by a pool. One thread at a time.

    array       numpy over the shared bytes: write inputs into it, read outputs from it
    datatype, shape   as requests name it; `array` of BYTES is flat, their wire form
    region, offset, byte_size   where the bytes are, as requests say it
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
        self._pool = pool  # a pool that is forgotten is closed

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """Raises ValueError when it has been released."""
        if self._array is None:
            raise ValueError("this SharedArray has been released")
        return self._array

    def place(self, tensor: Any) -> Any:
        """Tell tritonclient's InferInput or InferRequestedOutput to use these bytes; returns it.

        As long as it is there, the bytes are nobody else's, unless they are released.
        """
        _ = self.array  # not after release
        tensor.set_shared_memory(self.region, self.byte_size, self.offset)
        tensor.shared_array = self  # it says only where: `pool.share(x).input("x")` has nobody else
        return tensor

    def input(self, name: str, shape: Iterable[int] | None = None) -> Any:
        """tritonclient's InferInput with these bytes, for the protocol of the pool's client.

        shape   another one than that of the array; needed for BYTES that came from elsewhere
        """
        found = self._protocol().InferInput
        return self.place(found(name, list(self.shape if shape is None else shape), self.datatype))

    def output(self, name: str) -> Any:
        """tritonclient's InferRequestedOutput with these bytes, for the protocol of the pool's client."""
        return self.place(self._protocol().InferRequestedOutput(name))

    def texts(self, shape: Iterable[int] = (-1,)) -> np.ndarray[Any, Any]:
        """The elements of BYTES that are there, copied: an object array of `bytes`.

        shape   as the answer tells it; -1 for as many as there are up to the end of the bytes
        Raises ValueError if they are not whole.
        """
        return decode(self.array.data.cast("B"), tuple(shape))

    def release(self) -> None:
        """Give the bytes back, as soon as no array over them is left; the same happens to who is forgotten.

        Not before the answer is there: the server would write into what is somebody else's by then.
        """
        self._array = None

    def __enter__(self) -> SharedArray:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _protocol(self) -> Any:
        """tritonclient.http or tritonclient.grpc, whichever the client is of."""
        found = type(self._pool.client).__module__
        for each in ("tritonclient.grpc", "tritonclient.http"):
            if found.startswith(each):
                return sys.modules.get(each) or import_module(each)
        raise TypeError(
            "the pool has no client of tritonclient, whose tensors these could be: give it one, or use "
            "place()"
        )


def encode(array: npt.ArrayLike) -> bytes:
    """The wire form of text and bytes: each with its length before it, four bytes, little endian."""
    parts = []
    for element in np.asarray(array, dtype=object).ravel().tolist():
        data = element.encode() if isinstance(element, str) else bytes(element)
        parts += [len(data).to_bytes(4, "little"), data]
    return b"".join(parts)


def decode(data: memoryview, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The elements of the wire form; what is behind `shape` is not looked at."""
    most = -1 if -1 in shape else int(np.prod(shape, dtype=np.int64))
    found: list[bytes] = []
    at = 0
    while at < len(data) and len(found) != most:
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if end > len(data):
            raise ValueError(
                f"element {len(found)} of BYTES ends behind the {len(data)} bytes there are"
            )
        found.append(bytes(data[at + 4 : end]))
        at = end
    if most > len(found):
        raise ValueError(f"{len(found)} elements of BYTES are there, shape {shape} has {most}")
    array = np.empty(len(found), object)
    array[:] = found
    return array.reshape(shape)
