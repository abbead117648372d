"""LocalCache: stores responses in the memory of this process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from core import plugins
from core.caches.cache import Cache, Found
from core.errors import invalid
from core.tensor import Tensor

_OVERHEAD = 512  # approximate bytes of an entry without its tensors


class LocalCache(Cache):
    """A cache of at most `size` bytes that evicts the least recently used response.

    used   bytes in use
    """

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.used = 0
        self._entries: OrderedDict[bytes, tuple[list[Tensor], int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def fill(self) -> tuple[int, float]:
        return len(self._entries), self.used / self.size if self.size else 1.0

    def may_hold(self, size: int) -> bool:
        return size + _OVERHEAD <= self.size

    def ask(self, key: bytes, found: Found) -> None:
        found(self.lookup(key))

    def lookup(self, key: bytes) -> list[Tensor] | None:
        """Return the outputs under a key, only to read them, or None. Counts a lookup, marks them as used."""
        self.counters.lookups += 1
        if (entry := self._entries.get(key)) is None:
            return None
        self.counters.hits += 1
        self._entries.move_to_end(key)
        return entry[0]

    def insert(self, key: bytes, outputs: list[Tensor]) -> None:
        """Store a copy of `outputs`, unless it is larger than the cache or the key exists."""
        size = _OVERHEAD + sum(tensor.byte_size for tensor in outputs)
        if size > self.size or key in self._entries:
            return
        while self.used + size > self.size:
            _, (_, freed) = self._entries.popitem(last=False)
            self.used -= freed
            self.counters.evictions += 1
        # Copies: an output may be a row of a large batch, which must not live on for its sake. What was
        # copied already is bytes, and taken as it is.
        copies = [Tensor(t.name, t.dtype, t.shape, raw=bytes(t.raw)) for t in outputs]
        self._entries[key] = (copies, size)
        self.used += size
        self.counters.insertions += 1


def local_cache(settings: Mapping[str, str]) -> LocalCache:
    """Return the cache of --cache-config=local,size=N. Raises CoreError(INVALID) for other settings."""
    if not settings.get("size", "").isdecimal() or set(settings) != {"size"}:
        more = set(settings) - {"size"}
        raise invalid(
            f"the local cache takes size=<bytes>, found {dict(settings)}; try --cache-config=local,size=N"
            + (plugins.install_hint("response-cache") if more else "")
        )
    return LocalCache(int(settings["size"]))
