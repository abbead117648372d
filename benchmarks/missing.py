"""Missing: a server, a load generator or a tool that is not there.

The run goes on without it and the report says why.
"""

from __future__ import annotations

import shutil


class Missing(Exception):
    """What is missing and why, in one sentence; what to install, where that helps."""


def program(name: str, package: str) -> str:
    """The path of a program. Raises Missing that names the Debian package it comes with."""
    found = shutil.which(name)
    if found is None:
        raise Missing(f"no program '{name}' on the PATH; try: apt-get install {package}")
    return found
