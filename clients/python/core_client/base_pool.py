"""BasePool: the part that SharedMemoryPool and AsyncSharedMemoryPool share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from core_client import open_pools
from core_client.allocator import Allocator, Block, size_class
from core_client.registration import ByName, BySocket
from core_client.segment import Segment
from core_client.shared_array import Lease, SharedArray, described, encode

SEGMENT_BYTES = 16 * 2**20
MOST_BYTES = 2**30


class BasePool:
    """Memory that client and server share, registered in segments and divided into arrays.

    client         tritonclient's InferenceServerClient for HTTP or gRPC; may be None if there is a socket
    socket         path of the server's --shared-memory-socket: send descriptors instead of names
    segment_bytes  bytes to register at a time; a larger array gets a separate segment
    most_bytes     limit for all segments together
    mode           permissions of files in /dev/shm, for a server that runs as another user
    keep_names     keep the files while the pool is open, so that restarted workers find them; not used with
                   a socket
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
        self._registration: ByName | BySocket = (
            BySocket(socket) if socket else ByName(client, mode, keep_names)
        )
        self._allocator = Allocator(size_class(segment_bytes))
        self._segments: list[Segment] = []
        self._most_bytes = most_bytes
        self._closed = ""
        open_pools.add(self)

    @property
    def byte_size(self) -> int:
        """Return the size of all segments in bytes, in use or free."""
        return sum(segment.byte_size for segment in self._segments)

    def forget(self) -> None:
        """Abandon the pool in a forked process: it belongs to the parent. Arrays stay readable."""
        if self._closed:
            return
        self._closed = "the pool belongs to the parent process; make a new one after a fork"
        for segment in self._segments:
            segment.key = ""  # the parent removes the name
            segment.close()
        self._registration.forget()

    def close_at_exit(self) -> None:
        """Remove all names and close the socket, without waiting for the server; never raises.

        SharedMemoryPool replaces it by `close`, which unregisters.
        """
        if not self._closed:
            self._end("the interpreter ends")
            self._close_files()

    # one segment --------------------------------------------------------------

    def _taken(self, byte_size: int) -> Block | None:
        """Return a block for `byte_size` bytes, if one is free. Raises ValueError if the pool is closed."""
        if self._closed:
            raise ValueError(self._closed)
        return self._allocator.allocate(byte_size)

    def _withdrawn(self, byte_size: int) -> list[Segment]:
        """Remove and return unused segments, so that one for `byte_size` bytes fits below `most_bytes`.

        The list is empty if it fits already, or if not enough are unused. The caller unregisters and closes
        them.
        """
        more = self._allocator.next_segment(byte_size) - (self._most_bytes - self.byte_size)
        found = self._allocator.withdraw(more) if more > 0 else []
        for segment in found:
            self._segments.remove(segment)
        return found

    def _made(self, byte_size: int) -> Segment:
        """Make a segment for an array of `byte_size` bytes; it is not registered yet.

        Raises MemoryError if it exceeds `most_bytes` or the memory of the machine.
        """
        size = self._allocator.next_segment(byte_size)
        if self.byte_size + size > self._most_bytes:
            raise MemoryError(
                f"{byte_size} bytes need {size} more of shared memory; the pool has {self.byte_size} and "
                f"may have {self._most_bytes}: release arrays, or raise most_bytes"
            )
        try:
            return self._registration.make(size)
        except OSError as error:
            raise MemoryError(
                f"cannot make {size} bytes of shared memory: {error.strerror}; /dev/shm of a container has "
                "64 MiB unless it says otherwise"
            ) from error

    def _added(self, segment: Segment, byte_size: int) -> Block:
        """Add a segment that is registered; return its first block, for `byte_size` bytes.

        Its file loses its name, except with `keep_names`.
        """
        self._registration.registered(segment)
        self._segments.append(segment)
        return self._allocator.add(segment, byte_size)

    def _end(self, why: str) -> list[Segment]:
        """Close the pool for new arrays, which get ValueError(why); return all segments, to unregister."""
        self._closed = why
        open_pools.discard(self)
        return self._segments

    def _close_files(self) -> None:
        """Remove all files of /dev/shm and close the socket."""
        for segment in self._segments:
            segment.close()
        self._registration.close()

    # one array ------------------------------------------------------------------

    def _array(self, block: Block, shape: tuple[int, ...], dtype: Any) -> SharedArray:
        datatype, found = described(dtype)
        lease = Lease(self._allocator, block, size_of(shape, dtype))
        array = np.asarray(lease).view(found).reshape(shape)
        return SharedArray(self, block, datatype, array, shape)

    def _bytes(self, block: Block, byte_size: int, shape: Iterable[int]) -> SharedArray:
        lease = Lease(self._allocator, block, byte_size)
        return SharedArray(self, block, "BYTES", np.asarray(lease), tuple(shape))


def size_of(shape: tuple[int, ...], dtype: Any) -> int:
    """Return the size of an array in bytes. Raises the TypeError of `described`."""
    return int(np.prod(shape, dtype=np.int64)) * described(dtype)[1].itemsize


def sizes_of(shape: int | Iterable[int]) -> tuple[int, ...]:
    """Return a shape as a tuple."""
    return (shape,) if isinstance(shape, int) else tuple(shape)


def wire_form(array: np.ndarray[Any, Any]) -> bytes | None:
    """Return the wire form of an array of text, bytes or objects, as `encode`; None for numbers."""
    return encode(array) if array.dtype.kind in "OSU" else None
