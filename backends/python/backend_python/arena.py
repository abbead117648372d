"""Shared memory for the tensors of one direction: written by one side, read by the other.

An arena is memory without a name that the child process inherits: no other process can open it, and it ends
with its last mapping. It can grow. On Linux it is sealed against shrinking, so neither side can remove pages
that the other one uses.

Its first bytes are the *mark*. In the arena that the child writes it is the number of the batch that the
child has begun last; the server can read it after the child has died.

A *region* holds the tensors of one message. The sender allocates it; from the moment the message is
sent it belongs to the receiver, until the receiver names its offset as released.
"""

from __future__ import annotations

import bisect
import mmap
import os
import threading
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_python import system
from backend_python.protocol import INLINE, LOANS, MARK, ProtocolError

if TYPE_CHECKING:
    from backend_python.loans import Lender

ALIGNMENT = 64  # of regions and of the tensors in them
_TRIM_EVERY = 256  # allocations between two checks for unused pages
_KEPT = 1 << 22  # bytes that are never returned to the system


def aligned(size: int) -> int:
    return (size + ALIGNMENT - 1) & -ALIGNMENT


class Sender:
    """The side that writes. Not locked: the owner calls from one thread, or under its own lock.

    memory   the whole arena, writable; a new object after it has grown
    lender   lends GPU memory, and ends the loans that `free` gets among the regions; None without GPUs
    """

    lender: Lender | None = None

    def __init__(self, fd: int, growth: int = 1 << 20):
        self._fd = fd
        self._growth = max(growth, mmap.PAGESIZE)
        self._size = os.fstat(fd).st_size
        self._used: dict[int, int] = {}  # offset → size
        self._holes = [(ALIGNMENT, self._size - ALIGNMENT)]  # offset, size; by offset
        self._allocations = 0
        self._touched = 0  # end of the pages that may be in memory
        self._peak = 0  # end of the regions since the last trim
        self._map()

    def _map(self) -> None:
        self._mmap = mmap.mmap(self._fd, self._size)
        self.memory = memoryview(self._mmap)

    def mark(self, number: int) -> None:
        """Write a number to the beginning of the arena, where the receiver's `mark` reads it. Any thread."""
        MARK.pack_into(self.memory, 0, number)

    def allocate(self, size: int) -> int:
        """Return the offset of a new region of at least `size` bytes. Grow the memory if no hole has room."""
        size = aligned(size) or ALIGNMENT
        for i, (offset, hole) in enumerate(self._holes):
            if hole >= size:
                if hole == size:
                    del self._holes[i]
                else:
                    self._holes[i] = (offset + size, hole - size)
                break
        else:
            self._grow(size)
            return self.allocate(size)
        self._used[offset] = size
        self._allocations += 1
        if offset + size > self._peak:
            self._peak = offset + size
        return offset

    def free(self, offsets: Iterable[int]) -> None:
        """Free the regions that the receiver has released, and end the loans whose numbers are among them.

        Raises ProtocolError for a region that the receiver does not hold.
        """
        for offset in offsets:
            size = self._used.pop(offset, 0)
            if not size:
                if offset >= LOANS and self.lender is not None:
                    self.lender.returned(offset)
                    continue
                raise ProtocolError(f"region {offset} was released, but is not in use")
            self._add_hole(offset, size)
        if not self._used and self._allocations >= _TRIM_EVERY:
            self._trim()

    @property
    def used(self) -> int:
        """Return the number of regions that the receiver still holds."""
        return len(self._used)

    def close(self) -> None:
        """Forget the mapping; views of it stay valid."""
        self.memory = memoryview(b"")
        del self._mmap

    def _add_hole(self, offset: int, size: int) -> None:
        holes = self._holes
        i = bisect.bisect(holes, (offset,))
        if i < len(holes) and holes[i][0] == offset + size:
            size += holes.pop(i)[1]
        if i and sum(holes[i - 1]) == offset:
            i -= 1
            offset, before = holes.pop(i)
            size += before
        holes.insert(i, (offset, size))

    def _grow(self, size: int) -> None:
        """Double the size, or more if needed. A page takes no memory until it is written."""
        wanted = self._size + max(size, self._size)
        wanted += -wanted % self._growth
        os.ftruncate(self._fd, wanted)
        start, self._size = self._size, wanted
        self._map()
        self._add_hole(start, wanted - start)

    def _trim(self) -> None:
        """Return pages of the empty arena to the system. Keep twice the recent need, at least _KEPT bytes."""
        self._touched = max(self._touched, self._peak)
        keep = max(2 * self._peak, _KEPT)
        keep += -keep % mmap.PAGESIZE
        end = self._touched + -self._touched % mmap.PAGESIZE
        if end > keep:
            system.release_pages(self._fd, self._mmap, keep, end)
            self._touched = keep
        self._allocations = 0
        self._peak = 0


class _Region:
    """A region. It is released when this object is destroyed, after the last array that views it."""

    __slots__ = ("__array_interface__", "_mmap", "_offset", "_released")

    def __init__(self, receiver: Receiver, offset: int, size: int):
        self._mmap = receiver._mmap
        self._offset = offset
        self._released = receiver.released
        self.__array_interface__ = {
            "data": (receiver._address + offset, not receiver._writable),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self) -> None:
        self._released.append(self._offset)


class Receiver:
    """The side that reads. Thread-safe; a region may be destroyed on any thread.

    released   offsets of released regions, and numbers of ended loans, which the next messages to the sender
               report; append and popleft only
    """

    def __init__(self, fd: int, *, writable: bool):
        self._fd = fd
        self._writable = writable
        self._size = 0
        self.released: deque[int] = deque()
        self._taking = threading.Lock()  # mapping and address change together
        self._map()

    def _map(self) -> None:
        self._size = os.fstat(self._fd).st_size
        access = mmap.ACCESS_WRITE if self._writable else mmap.ACCESS_READ
        self._mmap = mmap.mmap(self._fd, self._size, access=access)
        whole: np.ndarray[Any, Any] = np.frombuffer(self._mmap, np.uint8)
        self._address: int = whole.__array_interface__["data"][0]

    @property
    def mark(self) -> int:
        """Return the number that the sender wrote last; 0 if it wrote none."""
        number: int = MARK.unpack_from(self._mmap)[0]
        return number

    def tensors(self, content: bytes, fixed: int, offset: int, size: int) -> tuple[Any, int, int]:
        """Find the bytes of a message's tensors.

        content  of the message; its first `fixed` bytes contain offset and size
        Return a buffer (writable in a writable arena), the index in it at which the tensors begin, and the
        index at which the rest of the content ends.
        """
        if offset != INLINE:
            return (self.take(offset, size) if size else b""), 0, len(content)
        end = len(content) - size
        if end < fixed:
            raise ProtocolError(f"message of {len(content)} bytes with {size} bytes of tensors")
        if self._writable and size:
            # An array, like a region, so that tensors are made in one way.
            return np.frombuffer(bytearray(memoryview(content)[end:]), np.uint8), 0, end
        return content, end, end

    def take(self, offset: int, size: int) -> np.ndarray[Any, Any]:
        """Return the bytes of a region, as a view that holds it.

        Raises ProtocolError if the region is not within the arena.
        """
        end = offset + size
        with self._taking:
            if end > self._size:
                self._map()
                if end > self._size:
                    raise ProtocolError(
                        f"region of {size} bytes at {offset} is outside of the arena"
                    )
            return np.asarray(_Region(self, offset, size))

    def drain_released(self, most: int) -> tuple[int, ...]:
        """Remove and return at most `most` items of `released`. The caller must send them."""
        released = self.released
        if not released:
            return ()
        return tuple(released.popleft() for _ in range(min(most, len(released))))

    def close(self) -> None:
        """Forget the mapping; views of it stay valid."""
        del self._mmap
