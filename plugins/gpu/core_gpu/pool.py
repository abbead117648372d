"""Pool: one block of memory, and the parts of it that are in use.

pools ─► [Pool.take] ─► Lease ─► arrays of the host, memory of a GPU.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque

from core_gpu.block import Block

ALIGNMENT = 256  # bytes: what the driver's own allocations have


class Lease:
    """A part of a pool, of the caller alone. The pool gets it back when this object is freed.

    address   of its first byte, a multiple of ALIGNMENT
    """

    __slots__ = ("_block", "_part", "_returned", "address")

    def __init__(self, block: Block, start: int, size: int, returned: deque[tuple[int, int]]):
        self.address = block.address + start
        self._block = block  # the memory lives as long as this lease, even if the pool does not
        self._part = start, size
        self._returned = returned

    def __del__(self) -> None:
        # The garbage collector may call this on a thread that holds the pool's lock: take none.
        self._returned.append(self._part)


class Pool:
    """Gives parts of a block. Thread-safe.

    Invariants:
    1. The holes are in the order of their addresses, and between two of them there is a part in use.
    2. Holes, parts in use and parts in `_returned` make up the whole block.
    """

    def __init__(self, block: Block):
        self.size = block.size
        self._block = block
        self._holes = [(0, block.size)]  # start and size
        self._free = block.size  # sum of the holes
        # Parts that are holes from the next call on.
        self._returned: deque[tuple[int, int]] = deque()
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """Bytes of the parts in use."""
        with self._lock:
            self._collect()
            return self.size - self._free

    def take(self, size: int) -> Lease | None:
        """Return the first part that has room for `size` bytes; None if there is none."""
        size = max(1, -(-size // ALIGNMENT)) * ALIGNMENT
        with self._lock:
            self._collect()
            for i, (start, room) in enumerate(self._holes):
                if room >= size:
                    rest = [(start + size, room - size)] if room > size else []
                    self._holes[i : i + 1] = rest
                    self._free -= size
                    return Lease(self._block, start, size, self._returned)
        return None

    def _collect(self) -> None:
        """Make holes of the parts that have come back."""
        while self._returned:
            start, size = self._returned.popleft()
            self._free += size
            i = bisect_left(self._holes, (start, 0))
            first = last = i
            if i < len(self._holes) and self._holes[i][0] == start + size:
                size += self._holes[i][1]
                last = i + 1
            if i and sum(self._holes[i - 1]) == start:
                start, before = self._holes[i - 1]
                size += before
                first = i - 1
            self._holes[first:last] = [(start, size)]
