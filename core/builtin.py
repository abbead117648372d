"""Core's own implementations of plugin hooks, called after those of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.hookspecs import hookimpl

# Each module is imported on first use: the supervisor of workers needs none of them.
if TYPE_CHECKING:
    from core.caches import Cache
    from core.repository import Repository
    from core.repository.agents import RepositoryAgent


@hookimpl(trylast=True)
def core_open_cache(name: str, settings: dict[str, str]) -> Cache | None:
    """Return a new cache if the name is "local", else None. Raises CoreError(INVALID) for wrong settings."""
    if name != "local":
        return None
    from core.caches.local import local_cache

    return local_cache(settings)


@hookimpl(trylast=True)
def core_open_repository(url: str) -> Repository | None:
    """Return the repository of a file:/// URL; None for another URL."""
    if not url.startswith("file:///"):
        return None
    from core.repository import FolderRepository

    return FolderRepository(url.removeprefix("file://"))


@hookimpl(trylast=True)
def core_open_repository_agent(name: str) -> RepositoryAgent | None:
    """Return the agent `checksum`; None for another name."""
    if name != "checksum":
        return None
    from core.repository.agents.checksum import ChecksumAgent

    return ChecksumAgent()
