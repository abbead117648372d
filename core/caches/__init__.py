"""Response caches of --cache-config. core/pipeline/cache.py decides which requests use them.

cache.py      the interface of a cache
local.py      a cache in this process; evicts the least recently used response
entry.py      responses as bytes
choose.py     open the cache of the option: of a plugin, or the local one
"""

from core.caches.cache import Cache, Counters, Found
from core.caches.choose import open_cache
from core.caches.entry import pack, unpack
from core.caches.local import LocalCache

__all__ = ["Cache", "Counters", "Found", "LocalCache", "open_cache", "pack", "unpack"]
