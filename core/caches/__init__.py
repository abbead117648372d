"""Where answers are kept for --cache-config; which requests ask there says core/pipeline/cache.py.

cache.py      what a cache is, for who writes one
local.py      in this process; the least recently used leaves
entry.py      answers as bytes
choose.py     the cache that an option asks for: of a plugin, or the local one
"""

from core.caches.cache import Cache, Counters, Found
from core.caches.choose import open_cache
from core.caches.entry import pack, unpack
from core.caches.local import LocalCache

__all__ = ["Cache", "Counters", "Found", "LocalCache", "open_cache", "pack", "unpack"]
