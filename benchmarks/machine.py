"""Describe the machine of the measurements."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any


def describe() -> dict[str, Any]:
    """Return CPU, cores that this process may use, memory and kernel."""
    return {
        "CPU": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        "kernel": platform.release(),
    }


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(name):
            return line.partition(":")[2].strip()
    return ""


def two_cores() -> tuple[int, int]:
    """Return the core of the servers and that of the load; the same core if there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]
