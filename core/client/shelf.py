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
        self._lock = threading.Lock()

    def take(self, byte_size: int) -> Block | None:
        """A free block for so many bytes; None if a segment has to be added before."""
        size = size_class(byte_size)
        with self._lock:
            while self._returned:
                block = self._returned.popleft()
                self._free.setdefault(block.size, []).append(block)
            if free := self._free.get(size):
                return free.pop()
            if self._cut is not None and size <= self._cut.byte_size - self._used:
                self._used += size
                return Block(self._cut, self._used - size, size)
        return None

    def next_segment(self, byte_size: int) -> int:
        """How large a segment must be from which `take` can give so many bytes."""
        size = size_class(byte_size)
        return size if size > self._segment_bytes // 2 else self._segment_bytes

    def add(self, segment: Segment, byte_size: int) -> Block:
        """A new segment, and its first block, for so many bytes."""
        block = Block(segment, 0, size_class(byte_size))
        if block.size < segment.byte_size:
            with self._lock:
                # What was left of the one before serves as long as it lasts: nothing smaller comes of it.
                self._cut, self._used = segment, block.size
        return block

    def put_back(self, block: Block) -> None:
        """Nobody looks at the block any more."""
        self._returned.append(block)
