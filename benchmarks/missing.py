"""Missing: error for a server, a load generator or a tool that is not installed.

The run continues without it, and the report gives the reason.
"""

from __future__ import annotations

import shutil


class Missing(Exception):
    """A missing part. The text names it, the reason, and the package to install if there is one."""


def program(name: str, package: str) -> str:
    """Return the path of a program. Raises Missing that names its Debian package."""
    found = shutil.which(name)
    if found is None:
        raise Missing(f"no program '{name}' on the PATH; try: apt-get install {package}")
    return found
