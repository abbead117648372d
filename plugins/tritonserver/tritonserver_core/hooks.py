"""The hook of the modules: repositories that a program registers while its server runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.repository import Repository


@core.hookimpl
def core_open_repository(url: str) -> Repository | None:
    """Return the folders that a server of this process reads; None for another URL."""
    # Imported here: a command line needs no module of a server.
    from tritonserver_core.registered import SCHEME, opened

    return opened(url) if url.startswith(f"{SCHEME}://") else None
