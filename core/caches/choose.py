"""Opens the cache of --cache-config."""

from __future__ import annotations

from collections.abc import Mapping

from core import plugins
from core.caches.cache import Cache
from core.errors import internal, invalid


def open_cache(config: Mapping[str, Mapping[str, str]]) -> Cache | None:
    """Return the response cache that `config` names; None for an empty `config`. Loop thread.

    config   settings of each cache, by its name; only the first cache is opened
    Raises CoreError: INVALID for an unknown name, INTERNAL for what is no Cache; and as `plugins.ask`.
    """
    if not config:
        return None
    (name, settings), *_ = config.items()
    found = plugins.ask("core_open_cache", name=name, settings=dict(settings))
    if found is None:
        hint = plugins.install_hint(name) or "; try --cache-config=local,size=N"
        raise invalid(f"no cache named '{name}': it is not built in, and no plugin brings it{hint}")
    if not isinstance(found, Cache):
        raise internal(
            f"the plugin of cache '{name}' made a {type(found).__name__}, not a core.caches.Cache"
        )
    return found
