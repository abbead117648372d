"""How many clients a port has at a time."""

from __future__ import annotations

import sys

try:
    import resource
except ImportError:  # Windows: nothing says how many files may be open
    resource = None  # type: ignore[assignment]

BACKLOG = 1024  # connections of one port that the system keeps until they are accepted
_SPARE_FILES = 256  # of those that the process may open: for models, logs and the other ports


def most_connections(wanted: int) -> int:
    """Connections of one port; `wanted` is the option's number, 0 for what open files allow."""
    if wanted:
        return wanted
    if resource is None:
        return sys.maxsize
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(files - _SPARE_FILES, files // 2)
