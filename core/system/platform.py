"""What the server asks of the operating system: in a form of Linux, and in one that POSIX systems share.

CORE_PORTABLE=1 selects the second form on Linux too, so that it is tested there. docs/operate/portable.md
lists what that form lacks. Compiled modules have their own two forms in core/native/system.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path

PORTABLE = sys.platform != "linux" or os.environ.get("CORE_PORTABLE", "0") not in ("", "0")

# Files of Linux; the portable form finds none of them.
_ROOT = Path("/nonexistent" if PORTABLE else "/")
PROC, SYS, MEMORY = _ROOT / "proc", _ROOT / "sys", _ROOT / "dev/shm"


def cores() -> frozenset[int]:
    """Return the cores that this process may use; portable: all of the machine."""
    if PORTABLE:
        return frozenset(range(os.cpu_count() or 1))
    return frozenset(os.sched_getaffinity(0))


def bind(thread: int, cores: Iterable[int]) -> None:
    """Bind a thread (its native id; 0: the caller) to cores. Raises OSError if it fails; portable: always."""
    if PORTABLE:
        raise OSError(errno.ENOTSUP, "only Linux binds threads to cores")
    os.sched_setaffinity(thread, cores)
