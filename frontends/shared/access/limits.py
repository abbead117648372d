"""Limits of a caller: requests per second, simultaneous requests, and tokens per minute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from core.errors import Exhausted
from frontends.shared.access.bucket_table import BucketRange, BucketTable
from frontends.shared.access.caller_bucket import LONGEST_NS, LOST, CallerBucket, Clock
from frontends.shared.access.usage_bucket import UsageBucket


@dataclass(frozen=True)
class Limits:
    """The limits of one caller; 0 means no limit."""

    rate: float = 0.0  # requests a second, over a long time
    burst: float = 0.0  # requests at once after a pause; at least 1; if 0, as many as `rate`
    concurrent: int = 0  # requests at a time
    tokens: int = 0  # that models read and generate for the caller in a minute

    def __bool__(self) -> bool:
        return self.rate > 0 or self.concurrent > 0 or self.tokens > 0

    @property
    def interval_ns(self) -> int:
        """Nanoseconds in which the bucket gains one request. Needs a `rate` above 0."""
        return max(1, min(LONGEST_NS, math.ceil(1e9 / self.rate)))

    @property
    def tolerance_ns(self) -> int:
        """Nanoseconds in which the bucket gains all but one of the requests that it holds when full.

        Needs a `rate` above 0.
        """
        return int(min(LONGEST_NS, (self.depth - 1.0) * self.interval_ns))

    @property
    def depth(self) -> float:
        """Number of requests in a full bucket."""
        return max(1.0, self.burst or self.rate)


class Allowance(CallerBucket):
    """Counts the requests of one caller, and refuses those above its limits.

    A bucket that time fills has the requests that the rate still permits; a counter has those in flight.

    usage   the bucket of the tokens that models read and generate for it; None for no limit
    """

    __slots__ = ("_interval_ns", "_limits", "_tolerance_ns", "usage")

    def __init__(
        self,
        limits: Limits,
        table: BucketTable,
        ranges: tuple[BucketRange, ...],
        clock_s: Clock,
        usage: UsageBucket | None = None,
    ):
        super().__init__(table, ranges, clock_s)
        self._limits = limits
        self._interval_ns = limits.interval_ns if limits.rate else 0
        self._tolerance_ns = limits.tolerance_ns if limits.rate else 0
        self.usage = usage

    def enter(self, spare: int = 0) -> int:
        """Count a new request, and return the slot for its call of `leave`.

        The slot is -1 if requests in flight have no limit. Raises Exhausted if a limit is reached; then
        nothing is counted.
        spare   requests that must stay possible, as far as a limit permits more than one
        """
        limit = self._limits.concurrent
        if not limit:
            self.take(spare)
            return -1
        most = max(1, limit - spare)
        slot, count = self._entered(most)
        if not count:
            raise Exhausted(
                f"{self._range.text} has {most} requests in flight, its limit is {limit}", 1.0
            )
        try:
            self.take(spare)
        except Exhausted:
            self._buckets.leave(slot)
            raise
        return slot

    def take(self, spare: int = 0) -> None:
        """Count one request in the rate. Raises Exhausted if the bucket is empty; then nothing is counted.

        spare   as in `enter`
        """
        if not self._interval_ns:
            return
        tolerance_ns = max(0, self._tolerance_ns - spare * self._interval_ns)
        wait_ns = LOST
        while wait_ns == LOST:
            now_ns = int(self._clock_s() * 1e9)
            slot = self._claimed(now_ns)
            wait_ns = self._buckets.take(
                slot, self._range.key, self._interval_ns, tolerance_ns, now_ns
            )
        if wait_ns:
            rate = self._limits.rate
            raise Exhausted(
                f"{self._range.text} has sent more than its limit of {rate:g} requests a second",
                wait_ns / 1e9,
            )

    def leave(self, slot: int) -> None:
        """End a request.

        slot   the result of `enter`
        """
        if slot >= 0:
            self._buckets.leave(slot)

    def _entered(self, most: int) -> tuple[int, int]:
        """Count a request in flight; return (slot, new count of requests in flight).

        If the count would exceed `most`, nothing is counted, and 0 is returned as the count.
        """
        while True:
            slot = self._claimed(int(self._clock_s() * 1e9))
            count = self._buckets.enter(slot, self._range.key, most)
            if count != LOST:
                return slot, count


class Allowances:
    """The allowances of all callers. Loop thread only.

    clock_s   monotonic time in seconds, equal in all processes of the machine
    """

    def __init__(self, clock_s: Clock, table: BucketTable | None = None):
        table = table or BucketTable()

        @lru_cache(4096)  # an evicted allowance is created again: all counts are in the table
        def found(name: str, limits: Limits, known: bool) -> Allowance:
            text = f"{limits.rate} {limits.burst} {limits.concurrent}"
            ranges = tuple(table.ranges(name, text, known=known))
            if not limits.tokens:
                return Allowance(limits, table, ranges, clock_s)
            own = tuple(table.ranges(name, f"tokens {limits.tokens}", known=known))
            bucket = UsageBucket(limits.tokens, table, own, clock_s)
            return Allowance(limits, table, ranges, clock_s, bucket)

        self._found = found

    def of(self, name: str, limits: Limits, *, known: bool) -> Allowance | None:
        """Return the allowance of a caller with these limits; None for a caller without limits.

        name    of a caller, or an address
        known   whether the caller presents a token
        """
        return self._found(name, limits, known) if limits else None
