"""More of the response cache: ages, bounds, shares of callers, and equal requests that run once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from core import plugins

if TYPE_CHECKING:
    from core.caches import Cache
    from core.options import Options
    from core.server import InferenceServer
    from core_response_cache.metrics import CacheMetrics

# Between two hooks of one start, by the identity of the options.
_metrics: dict[int, CacheMetrics] = {}


@core.hookimpl
def core_open_cache(name: str, settings: dict[str, str]) -> Cache | None:
    """Open the cache `local` with more settings than its size, and any cache with `coalesce`.

    Raises CoreError(INVALID) for an invalid setting, and the errors of another cache.
    """
    further = set(settings) - {"size"} if name == "local" else settings.keys() & {"coalesce"}
    if not further:
        return None  # a cache without these settings is the one that core or another plugin opens
    from core_response_cache.coalescing import Coalescing
    from core_response_cache.limited import LimitedCache
    from core_response_cache.settings import LocalSettings, coalesces

    rest = {key: text for key, text in settings.items() if key != "coalesce"}
    if name == "local":
        cache = LimitedCache(LocalSettings.of(rest))
    else:
        cache = plugins.ask("core_open_cache", name=name, settings=rest)
    return Coalescing(cache) if cache is not None and coalesces(name, settings) else cache


@core.hookimpl
def core_open_metric_source(options: Options) -> CacheMetrics:
    from core_response_cache.metrics import CacheMetrics

    _metrics[id(options)] = found = CacheMetrics()
    return found


# First: fair shares may name the callers in another way, which then counts for both.
@core.hookimpl(tryfirst=True)
def core_server_starting(server: InferenceServer) -> None:
    """Number the callers if they have shares, and count what equal requests share."""
    from core_response_cache.coalescing import Coalescing
    from core_response_cache.limited import LimitedCache
    from frontends.shared.access.caller_names import CallerNames

    cache, metrics = server.cache, _metrics.pop(id(server.options), None)
    if isinstance(cache, Coalescing):
        if metrics is not None:
            metrics.cache = cache
        cache = cache.inner
    if isinstance(cache, LimitedCache) and cache.settings.shares:
        CallerNames.of(server).identify(cache.settings.header, addresses=True)
