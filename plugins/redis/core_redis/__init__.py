"""The cache `redis`: --cache-config=redis,host=…"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.caches import Cache


@core.hookimpl
def core_open_cache(name: str, settings: dict[str, str]) -> Cache | None:
    """Return the cache `redis`; it connects at the first request.

    Raises CoreError(INVALID) for an invalid setting.
    """
    if name != "redis":
        return None
    # Imported here: a server with another cache needs no client of Redis.
    from core_redis.cache import redis_cache

    return redis_cache(settings)
