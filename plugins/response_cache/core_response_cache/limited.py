"""LimitedCache: responses in the memory of this process, with an age, a largest size and shares of callers.

Entries are in the order of their last use, and so are those of each caller. A caller above its share gives up
its own, whoever needs the room.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from core.caches import Cache, Found
from core.request import InferenceRequest
from core.tensor import Tensor
from core_response_cache.settings import LocalSettings

_OVERHEAD = 512  # approximate bytes of an entry without its tensors


@dataclass(slots=True)
class _Entry:
    """A stored response. `size` is in bytes, `expires_s` on the clock of the cache."""

    key: bytes
    outputs: list[Tensor]
    size: int
    expires_s: float
    owner: _Owner


@dataclass(slots=True, eq=False)
class _Owner:
    """The entries of one caller, the least recently used first; their bytes."""

    caller: int
    used: int = 0
    entries: OrderedDict[bytes, _Entry] = field(default_factory=OrderedDict)


class LimitedCache(Cache):
    """A cache of at most `settings.size` bytes. Not thread-safe: call from the event loop only.

    used   bytes in use
    """

    def __init__(self, settings: LocalSettings, clock_s: Callable[[], float] = time.monotonic):
        super().__init__()
        self.settings = settings
        self.used = 0
        self._clock_s = clock_s
        self._most = int(settings.size * settings.share)  # bytes of one caller, if others need room
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()  # the least recently used first
        self._oldest: OrderedDict[bytes, _Entry] = OrderedDict()  # with an age: the oldest first
        self._owners: dict[int, _Owner] = {}  # those with entries
        self._above: set[_Owner] = set()  # those that have more than their share

    def __len__(self) -> int:
        return len(self._entries)

    def fill(self) -> tuple[int, float]:
        """Return the number of stored responses and the used share of the space."""
        self._expire()
        return len(self._entries), self.used / self.settings.size if self.settings.size else 1.0

    def may_hold(self, size: int) -> bool:
        """Return whether a response with `size` bytes of tensors may be stored."""
        return size <= self.settings.largest and size + _OVERHEAD <= self._most

    def ask(self, key: bytes, found: Found) -> None:
        """Call `found` at once with the outputs under a key, or with None; mark them as used now."""
        self.counters.lookups += 1
        self._expire()
        entry = self._entries.get(key)
        if entry is None:
            found(None)
            return
        self.counters.hits += 1
        self._entries.move_to_end(key)
        entry.owner.entries.move_to_end(key)
        found(entry.outputs)

    def insert(self, key: bytes, outputs: list[Tensor]) -> None:
        """Store a copy of `outputs` for callers without a number."""
        self._insert(0, key, outputs)

    def insert_for(self, request: InferenceRequest, key: bytes, outputs: list[Tensor]) -> None:
        """Store a copy of `outputs` for the caller of a request, unless it is too large or the key exists."""
        while request.parent is not None:  # a step of an ensemble has the caller of the whole
            request = request.parent
        self._insert(request.caller if self.settings.shares else 0, key, outputs)

    def _insert(self, caller: int, key: bytes, outputs: list[Tensor]) -> None:
        self._expire()
        bare = sum(tensor.byte_size for tensor in outputs)
        if key in self._entries or not self.may_hold(bare):
            return
        size = bare + _OVERHEAD
        while self.used + size > self.settings.size:
            self._remove(self._victim(caller, size))
            self.counters.evictions += 1
        owner = self._owners.setdefault(caller, _Owner(caller))
        # Copies: an output may be a row of a large batch. What is bytes already is taken without a copy.
        copies = [Tensor(t.name, t.dtype, t.shape, raw=bytes(t.raw)) for t in outputs]
        entry = _Entry(key, copies, size, self._clock_s() + self.settings.ttl_s, owner)
        self._entries[key] = owner.entries[key] = entry
        if self.settings.ttl_s:
            self._oldest[key] = entry
        self._count(owner, size)
        self.counters.insertions += 1

    def _victim(self, caller: int, size: int) -> _Entry:
        """Return the entry to evict for a new one of a caller."""
        own = self._owners.get(caller)
        if own is not None and own.used + size > self._most:
            return next(iter(own.entries.values()))
        if self._above:
            greediest = max(self._above, key=lambda owner: owner.used)
            return next(iter(greediest.entries.values()))
        return next(iter(self._entries.values()))

    def _expire(self) -> None:
        while self._oldest:
            entry = next(iter(self._oldest.values()))
            if entry.expires_s > self._clock_s():
                return
            self._remove(entry)

    def _remove(self, entry: _Entry) -> None:
        del self._entries[entry.key], entry.owner.entries[entry.key]
        self._oldest.pop(entry.key, None)
        self._count(entry.owner, -entry.size)

    def _count(self, owner: _Owner, size: int) -> None:
        self.used += size
        owner.used += size
        if owner.used > self._most:
            self._above.add(owner)
        else:
            self._above.discard(owner)
        if not owner.entries:
            del self._owners[owner.caller]
