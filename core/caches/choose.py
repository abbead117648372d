"""The cache that --cache-config asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from core import plugins
from core.caches.cache import Cache
from core.caches.local import local_cache
from core.errors import internal, invalid


def _redis(settings: Mapping[str, str]) -> Cache:
    from core.caches.redis import redis_cache  # a server without it need not import its client

    return redis_cache(settings)


_BUILT_IN: dict[str, Callable[[Mapping[str, str]], Cache]] = {"local": local_cache, "redis": _redis}


def open_cache(config: Mapping[str, Mapping[str, str]]) -> Cache | None:
    """The cache of `config`, name → setting → value; None without a name. Loop thread.

    What a plugin brings goes first, then what is built in, as for repositories and agents.
    Raises CoreError(INVALID) for a cache or a setting that there is not, and what a plugin raises.
    """
    if not config:
        return None
    (name, settings), *_ = config.items()
    found = plugins.ask("core_open_cache", name=name, settings=dict(settings))
    if found is None and name in _BUILT_IN:
        found = _BUILT_IN[name](settings)
    if found is None:
        raise invalid(
            f"no cache named '{name}' (installed: {', '.join(_BUILT_IN)}; a plugin may bring others); "
            "try --cache-config=local,size=N"
        )
    if not isinstance(found, Cache):
        raise internal(
            f"the plugin of cache '{name}' made a {type(found).__name__}, not a core.caches.Cache"
        )
    return found
