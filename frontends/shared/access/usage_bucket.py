"""UsageBucket: the tokens that models may still read and generate for a caller."""

from __future__ import annotations

import math

from core.errors import Exhausted
from frontends.shared.access.bucket_table import BucketRange, BucketTable
from frontends.shared.access.caller_bucket import LONGEST_NS, LOST, CallerBucket, Clock

_MINUTE_NS = 60 * 10**9


class UsageBucket(CallerBucket):
    """Limits the tokens of one caller. A full bucket has those of a minute; time fills it.

    The cost of a request is known only when it ends. So a request may begin while the bucket has a token, and
    its cost may take the level below zero: then the next one must wait until it is above.

    tokens   that the bucket gains in a minute
    """

    __slots__ = ("_tokens",)

    def __init__(
        self, tokens: int, table: BucketTable, ranges: tuple[BucketRange, ...], clock_s: Clock
    ):
        super().__init__(table, ranges, clock_s)
        self._tokens = tokens

    def check(self) -> None:
        """Raise Exhausted if the bucket has no token."""
        # An interval of 0 takes nothing.
        wait_ns = self._moved(0, _MINUTE_NS - self._cost_ns(1))
        if wait_ns:
            wait_s = wait_ns / 1e9
            raise Exhausted(
                f"{self._range.text} has used up its limit of {self._tokens} tokens a minute; it has tokens "
                f"again in {math.ceil(wait_s)} s",
                wait_s,
            )

    def charge(self, tokens: int) -> None:
        """Take tokens out of the bucket, also more than it has."""
        if tokens > 0:
            self._moved(self._cost_ns(tokens), LONGEST_NS)

    def _cost_ns(self, tokens: int) -> int:
        """Return the nanoseconds in which the bucket gains a number of tokens."""
        return min(LONGEST_NS, -(-_MINUTE_NS * tokens // self._tokens))

    def _moved(self, interval_ns: int, tolerance_ns: int) -> int:
        """Take an interval out of the bucket, and return 0.

        If the tolerance forbids that, take nothing; return the nanoseconds until it permits it.
        """
        wait_ns = LOST
        while wait_ns == LOST:
            now_ns = int(self._clock_s() * 1e9)
            slot = self._claimed(now_ns)
            wait_ns = self._buckets.take(slot, self._range.key, interval_ns, tolerance_ns, now_ns)
        return wait_ns
