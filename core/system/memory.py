"""How much memory this process may use: that of the machine, or less in a container."""

from __future__ import annotations

import os
from pathlib import Path

# Where the limits of a control group are: version 2 shows the group's own root to a container, version 1 too.
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
# When nothing tells, a small machine is assumed.
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
    except (AttributeError, OSError, ValueError):  # Windows, or a system that does not tell
        return _UNKNOWN
