"""Encrypted models: the repository agent `decrypt`, and core encrypt."""

from __future__ import annotations

import core


@core.hookimpl
def core_open_repository_agent(name: str) -> core.RepositoryAgent | None:
    """Return the agent `decrypt`; None for another name."""
    if name != "decrypt":
        return None
    # Imported here: a server without encrypted models needs no cryptography.
    from core_encryption.decrypt import DecryptAgent

    return DecryptAgent()
