"""process: what the page shows of the process that serves it. Imports no server library."""

from __future__ import annotations

import os
import time
from typing import Any

from core.system import platform


def process(held: int = 0) -> dict[str, Any]:
    """Return processor time in seconds, at a time of the monotonic clock, and memory in bytes.

    held   bytes that requests hold
    """
    return {
        "pid": os.getpid(),
        "at_s": time.monotonic(),
        "cpu_s": sum(os.times()[:2]),
        "rss": _resident(),
        "held": held,
    }


def _resident() -> int:
    """Return the resident memory of this process in bytes; 0 where the system does not say it."""
    try:
        pages = int((platform.PROC / "self" / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
