"""CallerBucket: finds the slot of a caller's bucket in the table. Base class of what counts in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from frontends.shared.access.bucket_table import BucketRange, BucketTable

Clock = Callable[[], float]

LONGEST_NS = 2**60  # 36 years: upper bound of the time to fill a bucket, so that no sum overflows
LOST = -1  # the slot belongs to another caller by now


class CallerBucket:
    """The bucket of one caller in a table, which other workers may share. Loop thread only.

    clock_s   monotonic time in seconds, equal in all processes of the machine
    ranges    slots that may hold the bucket, in order of preference
    """

    __slots__ = ("_buckets", "_clock_s", "_range", "_ranges", "_slot")

    def __init__(self, table: BucketTable, ranges: tuple[BucketRange, ...], clock_s: Clock):
        self._buckets = table.buckets
        self._ranges = ranges
        self._clock_s = clock_s
        self._range = ranges[0]
        self._slot = -1

    def _claimed(self, now_ns: int) -> int:
        """Return the slot of the caller's bucket, which is claimed if the caller has none.

        While no slot of the caller's own range is free, it is a slot that the caller shares with others.
        """
        own = self._range is self._ranges[0] and self._slot >= 0
        if own and self._buckets.key(self._slot) == self._range.key:
            return self._slot
        for found in self._ranges:
            slot = self._buckets.claim(found.first, found.count, found.key, now_ns)
            if slot >= 0:
                break
        else:  # even the reserve is full: share its first slot, under the key of its owner
            slot = found.first
            found = replace(found, key=self._buckets.key(slot))
        self._range, self._slot = found, slot
        return slot
