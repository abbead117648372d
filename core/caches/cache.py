"""Cache: the interface of response caches."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import CoreError
from core.request import InferenceRequest
from core.tensor import Tensor

Found = Callable[["list[Tensor] | CoreError | None"], None]


class Counters:
    """Counters of a cache since the start.

    lookups      responses that were looked up; `hits` of them were found
    insertions   responses that were stored; `evictions` of them were removed for others
    failures     failed lookups and insertions; requests see them as misses
    lookup_ns, insertion_ns   time that requests waited for them; written by the caller of the cache
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
    """Stores responses by key. Not thread-safe: call from the event loop only. No method may block.

    A failure of the cache fails no request: a failed lookup is a miss, a failed insertion is dropped.
    """

    def __init__(self) -> None:
        self.counters = Counters()

    def ask(self, key: bytes, found: Found) -> None:
        """Call `found` exactly once, at once or later, on the loop thread.

        key     32 bytes
        found   takes the outputs under the key, in their order, only to read them; or None if there are none;
                or an error with which the request fails, such as that of an equal one
        """
        raise NotImplementedError

    def insert(self, key: bytes, outputs: list[Tensor]) -> None:
        """Store a copy of `outputs`, whose memory may be reused soon after the call."""
        raise NotImplementedError

    def ask_for(self, request: InferenceRequest, key: bytes, found: Found) -> None:
        """Do as `ask`, for a cache that needs the request. After None, `insert_for` or `lost` follows."""
        self.ask(key, found)

    def insert_for(self, request: InferenceRequest, key: bytes, outputs: list[Tensor]) -> None:
        """Do as `insert`, for a cache that needs the request."""
        self.insert(key, outputs)

    def lost(self, request: InferenceRequest, key: bytes, error: CoreError | None) -> None:
        """Take note that a request inserts no response; also one that never asked: its key is b"".

        error   with which the request failed; None if its response is not stored, or there is none
        """

    def may_hold(self, size: int) -> bool:
        """Return whether a response with `size` bytes of tensors may be stored. False avoids a copy."""
        return True

    def fill(self) -> tuple[int, float] | None:
        """Return the number of stored responses and the used share of the space; None if unknown."""
        return None

    async def close(self) -> None:
        """Close the cache. Called once, after the last request."""
