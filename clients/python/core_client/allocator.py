"""Allocator: divide segments into blocks, and reuse free blocks."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

from core_client.segment import Segment

SMALLEST = 4096  # bytes: a page


class Block(NamedTuple):
    """`size` bytes of a segment from byte `offset` on; `size` is a result of `size_class`."""

    segment: Segment
    offset: int
    size: int


def size_class(byte_size: int) -> int:
    """Return the size of a block for `byte_size` bytes: at least SMALLEST, else at most a quarter more."""
    if byte_size <= SMALLEST:
        return SMALLEST
    step = 1 << ((byte_size - 1).bit_length() - 3)
    return -(-byte_size // step) * step


class Allocator:
    """Any thread. Invariants:

    1. A block is free or in use; each byte of a segment is in one block or not cut yet.
    2. `free` never waits: garbage collection calls it, on a thread that may hold the lock.

    segment_bytes   size of segments; a block of more than half of it gets its own segment
    """

    def __init__(self, segment_bytes: int):
        self._segment_bytes = segment_bytes
        self._free: dict[int, list[Block]] = {}
        self._freed: deque[Block] = deque()
        self._cut: Segment | None = None  # the segment from which new blocks are cut
        self._used = 0  # bytes of this segment that are in blocks
        self._in_blocks: dict[Segment, int] = {}  # bytes of each segment that are in blocks
        self._lock = threading.Lock()

    def allocate(self, byte_size: int) -> Block | None:
        """Return a block for `byte_size` bytes; None if a segment must be added first."""
        size = size_class(byte_size)
        with self._lock:
            self._collect_freed()
            if free := self._free.get(size):
                return free.pop()
            if self._cut is not None and size <= self._cut.byte_size - self._used:
                self._used += size
                self._in_blocks[self._cut] += size
                return Block(self._cut, self._used - size, size)
        return None

    def next_segment(self, byte_size: int) -> int:
        """Return the size of the segment to add for a block of `byte_size` bytes."""
        size = size_class(byte_size)
        return size if size > self._segment_bytes // 2 else self._segment_bytes

    def add(self, segment: Segment, byte_size: int) -> Block:
        """Add a segment; return its first block, for `byte_size` bytes."""
        block = Block(segment, 0, size_class(byte_size))
        with self._lock:
            self._in_blocks[segment] = block.size
            if block.size < segment.byte_size:
                # The uncut rest of the previous segment stays unused.
                self._cut, self._used = segment, block.size
        return block

    def withdraw(self, byte_size: int) -> list[Segment]:
        """Remove and return the oldest segments that have no block in use.

        They have at least `byte_size` bytes together; the list is empty if there are not enough.
        """
        with self._lock:
            self._collect_freed()
            free = dict.fromkeys(self._in_blocks, 0)
            for blocks in self._free.values():
                for block in blocks:
                    free[block.segment] += block.size
            idle: list[Segment] = []
            for segment, in_blocks in self._in_blocks.items():
                if sum(each.byte_size for each in idle) >= byte_size:
                    break
                if free[segment] == in_blocks:
                    idle.append(segment)
            if sum(each.byte_size for each in idle) < byte_size:
                return []
            for segment in idle:
                del self._in_blocks[segment]
                if segment is self._cut:
                    self._cut = None
            for blocks in self._free.values():
                blocks[:] = [block for block in blocks if block.segment in self._in_blocks]
            return idle

    def _collect_freed(self) -> None:
        while self._freed:
            block = self._freed.popleft()
            self._free.setdefault(block.size, []).append(block)

    def free(self, block: Block) -> None:
        """Free a block: no array uses it any more."""
        self._freed.append(block)
