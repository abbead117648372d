"""Cache: what keeps answers by key."""

from __future__ import annotations

from collections.abc import Callable

from core.tensor import Tensor

Found = Callable[["list[Tensor] | None"], None]


class Counters:
    """What has happened in a cache since the start.

    lookups      answers that were asked for; `hits` of them were there
    insertions   answers that were kept; `evictions` of them had to leave for others
    failures     lookups and insertions that the cache could not do; to requests they are misses
    lookup_ns, insertion_ns   what requests have waited for them; written by who asks the cache
    """

    def __init__(self) -> None:
        self.lookups = 0
        self.hits = 0
        self.insertions = 0
        self.evictions = 0
        self.failures = 0
        self.lookup_ns = 0
        self.insertion_ns = 0


class Cache:
    """Keeps answers by key. Loop thread only; nothing here may block it.

    A cache never fails a request: what it cannot find out is not there, what it cannot keep is gone.
    """

    def __init__(self) -> None:
        self.counters = Counters()

    def ask(self, key: bytes, found: Found) -> None:
        """Call `found` exactly once, at once or later, on the loop thread.

        key     32 bytes
        found   takes the outputs under the key, in their order, or None; they are the caller's to read
        """
        raise NotImplementedError

    def insert(self, key: bytes, outputs: list[Tensor]) -> None:
        """Keep a copy of `outputs`, whose memory may be another's soon after the call."""
        raise NotImplementedError

    def may_hold(self, size: int) -> bool:
        """Whether an answer whose tensors have `size` bytes may be kept; False spares a copy of it."""
        return True

    def fill(self) -> tuple[int, float] | None:
        """How many answers are kept, and the share of the space that they take; None if it cannot tell."""
        return None

    async def close(self) -> None:
        """Once, after the last request."""
