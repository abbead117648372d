"""What core itself brings for the hooks of plugins. It is registered as a plugin that is asked last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.hookspecs import hookimpl

# Each module is imported when it is asked for: the process that only starts workers needs none of them.
if TYPE_CHECKING:
    from core.caches import Cache
    from core.repository import Repository
    from core.repository.agents import RepositoryAgent


@hookimpl(trylast=True)
def core_open_cache(name: str, settings: dict[str, str]) -> Cache | None:
    """Return the cache `local`. Raises CoreError(INVALID) for a setting that is wrong."""
    if name != "local":
        return None
    from core.caches.local import local_cache

    return local_cache(settings)


@hookimpl(trylast=True)
def core_open_repository(url: str) -> Repository | None:
    """Return the folder of a file:/// URL."""
    if not url.startswith("file:///"):
        return None
    from core.repository import FolderRepository

    return FolderRepository(url.removeprefix("file://"))


@hookimpl(trylast=True)
def core_open_repository_agent(name: str) -> RepositoryAgent | None:
    """Return the agent `checksum`."""
    if name != "checksum":
        return None
    from core.repository.agents.checksum import ChecksumAgent

    return ChecksumAgent()
