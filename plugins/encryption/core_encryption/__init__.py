"""Encrypted models: the repository agent `decrypt`, and python -m core encrypt.

decrypt.py   the agent: decrypt the files while the model is loaded
encrypt.py   write an encrypted copy of a model
command.py   python -m core encrypt
format.py    the format of encrypted files, and keys
"""

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
