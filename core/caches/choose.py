"""Opens the cache of --cache-config."""

from __future__ import annotations

from collections.abc import Mapping

from core import plugins
from core.caches.cache import Cache
from core.errors import internal, invalid


def open_cache(config: Mapping[str, Mapping[str, str]]) -> Cache | None:
    """Return the cache of `config`, name → setting → value; None if it is empty. Loop thread.

    Raises CoreError: INVALID for an unknown cache, INTERNAL for what is no Cache, and the plugin's errors.
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
