"""Stock: what the pools of threads and of asyncio have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from core.client import open_pools
from core.client.registrars import ByName, BySocket
from core.client.segment import Segment
from core.client.shared_array import Lease, SharedArray, described, encode
from core.client.shelf import Block, Shelf, size_class

SEGMENT_BYTES = 16 * 2**20
MOST_BYTES = 2**30


class Stock:
    """Segments, blocks, the end.

    client         tritonclient's InferenceServerClient, over HTTP or gRPC, of the same machine; may be None
                   with a socket
    socket         path of --shared-memory-socket: descriptors instead of names
    segment_bytes  what is registered at a time, unless an array is larger
    most_bytes     of all segments
    mode           permissions of files in /dev/shm, if the server has another user
    keep_names     whether the files stay there while the pool is open: workers that are started again find
                   them. Without a socket only
    """

    def __init__(
        self,
        client: Any = None,
        *,
        socket: str = "",
        segment_bytes: int = SEGMENT_BYTES,
        most_bytes: int = MOST_BYTES,
        mode: int = 0o600,
        keep_names: bool = False,
    ):
        self._closed = "the pool has never been open"
        if client is None and not socket:
            raise TypeError(
                "a pool needs a client of tritonclient, or the path of the server's socket"
            )
        self.client = client
        self._registrar: ByName | BySocket = (
            BySocket(socket) if socket else ByName(client, mode, keep_names)
        )
        self._shelf = Shelf(size_class(segment_bytes))
        self._segments: list[Segment] = []
        self._most_bytes = most_bytes
        self._closed = ""
        open_pools.add(self)

    @property
    def byte_size(self) -> int:
        """Bytes of all segments, used or not."""
        return sum(segment.byte_size for segment in self._segments)

    def forget(self) -> None:
        """This is a process that was forked: the pool is the other's. Arrays stay readable."""
        if self._closed:
            return
        self._closed = "this pool is of the process that has forked this one; make one here"
        for segment in self._segments:
            segment.key = ""  # the name is the other's to take away
            segment.close()
        self._registrar.forget()

    def close_at_exit(self) -> None:
        """Leave nothing behind, as far as that goes without waiting for anybody; never raises."""
        if not self._closed:
            self._end("the interpreter ends")
            self._close_files()

    # one segment --------------------------------------------------------------

    def _taken(self, byte_size: int) -> Block | None:
        """A block for so many bytes, if there is one. Raises ValueError when the pool is closed."""
        if self._closed:
            raise ValueError(self._closed)
        return self._shelf.take(byte_size)

    def _withdrawn(self, byte_size: int) -> list[Segment]:
        """Segments that nobody uses, and that are in the way of one for `byte_size` bytes: arrays have had
        other sizes before. To be unregistered and closed."""
        more = self._shelf.next_segment(byte_size) - (self._most_bytes - self.byte_size)
        found = self._shelf.withdraw(more) if more > 0 else []
        for segment in found:
            self._segments.remove(segment)
        return found

    def _made(self, byte_size: int) -> Segment:
        """A segment from which `byte_size` bytes can be had; not registered.

        Raises MemoryError when the pool has as much as it may, or the machine.
        """
        size = self._shelf.next_segment(byte_size)
        if self.byte_size + size > self._most_bytes:
            raise MemoryError(
                f"{byte_size} bytes need {size} more of shared memory; the pool has {self.byte_size} and "
                f"may have {self._most_bytes}: release arrays, or give most_bytes"
            )
        try:
            return self._registrar.make(size)
        except OSError as error:
            raise MemoryError(
                f"cannot make {size} bytes of shared memory: {error.strerror}; /dev/shm of a container has "
                "64 MiB unless it says otherwise"
            ) from error

    def _added(self, segment: Segment, byte_size: int) -> Block:
        """The server has the segment; the block for who needed it."""
        self._registrar.registered(segment)
        self._segments.append(segment)
        return self._shelf.add(segment, byte_size)

    def _end(self, why: str) -> list[Segment]:
        """Give nothing more; the segments to be unregistered."""
        self._closed = why
        open_pools.discard(self)
        return self._segments

    def _close_files(self) -> None:
        """Leave nothing in /dev/shm, and hang up."""
        for segment in self._segments:
            segment.close()
        self._registrar.close()

    # one array ------------------------------------------------------------------

    def _array(self, block: Block, shape: tuple[int, ...], dtype: Any) -> SharedArray:
        datatype, found = described(dtype)
        lease = Lease(self._shelf, block, size_of(shape, dtype))
        array = np.asarray(lease).view(found).reshape(shape)
        return SharedArray(self, block, datatype, array, shape)

    def _bytes(self, block: Block, byte_size: int, shape: Iterable[int]) -> SharedArray:
        lease = Lease(self._shelf, block, byte_size)
        return SharedArray(self, block, "BYTES", np.asarray(lease), tuple(shape))


def size_of(shape: tuple[int, ...], dtype: Any) -> int:
    """Bytes of an array. Raises TypeError as `described`."""
    return int(np.prod(shape, dtype=np.int64)) * described(dtype)[1].itemsize


def sizes_of(shape: int | Iterable[int]) -> tuple[int, ...]:
    """A shape as numpy takes it."""
    return (shape,) if isinstance(shape, int) else tuple(shape)


def wire_form(array: np.ndarray[Any, Any]) -> bytes | None:
    """The bytes of text, of which a pool keeps the wire form; None for other arrays."""
    return encode(array) if array.dtype.kind in "OSU" else None
