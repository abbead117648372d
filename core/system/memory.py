"""The memory that this process may use: the machine's, or the limit of a container."""

from __future__ import annotations

import os
from pathlib import Path

# Files with the limit of a control group, in versions 2 and 1: a container sees its own group as the root.
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
# Assumed if the system does not report its memory.
_UNKNOWN = 4 * 2**30


def available_bytes(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of memory of the machine, or the container's limit if that is lower.

    cgroup   where the control group of the process is mounted
    """
    limits = [_physical_bytes()]
    for name in _LIMITS:
        try:
            limits.append(int((cgroup / name).read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits)


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows, or a system that does not report it
        return _UNKNOWN
