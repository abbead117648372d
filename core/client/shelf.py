"""Shelf: free blocks of memory by their size, and segments that blocks are cut from."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

from core.client.segment import Segment

SMALLEST = 4096  # bytes: a page


class Block(NamedTuple):
    """`size` bytes of a segment from byte `offset` on; size is one of `size_class`."""

    segment: Segment
    offset: int
    size: int


def size_class(byte_size: int) -> int:
    """The size of the block for so many bytes: at most a quarter more, in four steps to each doubling."""
    if byte_size <= SMALLEST:
        return SMALLEST
    step = 1 << ((byte_size - 1).bit_length() - 3)
    return -(-byte_size // step) * step


class Shelf:
    """Any thread. Invariants:

    1. A block is free or taken; bytes of a segment are in one block, or not yet cut.
    2. `put_back` never waits: garbage collection calls it, on a thread that may hold the lock.

    segment_bytes   size of segments; a block of more than half of that has a segment of its own
    """

    def __init__(self, segment_bytes: int):
        self._segment_bytes = segment_bytes
        self._free: dict[int, list[Block]] = {}
        self._returned: deque[Block] = deque()
        self._cut: Segment | None = None  # the one that blocks are cut from
        self._used = 0  # bytes of it
        self._in_blocks: dict[Segment, int] = {}  # bytes of each segment that are in blocks
        self._lock = threading.Lock()

    def take(self, byte_size: int) -> Block | None:
        """A free block for so many bytes; None if a segment has to be added before."""
        size = size_class(byte_size)
        with self._lock:
            self._take_back()
            if free := self._free.get(size):
                return free.pop()
            if self._cut is not None and size <= self._cut.byte_size - self._used:
                self._used += size
                self._in_blocks[self._cut] += size
                return Block(self._cut, self._used - size, size)
        return None

    def next_segment(self, byte_size: int) -> int:
        """How large a segment must be from which `take` can give so many bytes."""
        size = size_class(byte_size)
        return size if size > self._segment_bytes // 2 else self._segment_bytes

    def add(self, segment: Segment, byte_size: int) -> Block:
        """A new segment, and its first block, for so many bytes."""
        block = Block(segment, 0, size_class(byte_size))
        with self._lock:
            self._in_blocks[segment] = block.size
            if block.size < segment.byte_size:
                # What was left of the one before serves as long as it lasts: nothing smaller comes of it.
                self._cut, self._used = segment, block.size
        return block

    def withdraw(self, byte_size: int) -> list[Segment]:
        """Segments of at least so many bytes together of which nobody has a block: the oldest of them, and
        nothing is cut from them any more. Empty if there are not so many."""
        with self._lock:
            self._take_back()
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

    def _take_back(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            self._free.setdefault(block.size, []).append(block)

    def put_back(self, block: Block) -> None:
        """Nobody looks at the block any more."""
        self._returned.append(block)
