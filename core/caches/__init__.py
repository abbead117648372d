"""Response caches of --cache-config. core/pipeline/cache.py decides which requests use them."""

from core.caches.cache import Cache, Counters, Found
from core.caches.choose import open_cache
from core.caches.entry import pack, unpack
from core.caches.local import LocalCache

__all__ = ["Cache", "Counters", "Found", "LocalCache", "open_cache", "pack", "unpack"]
