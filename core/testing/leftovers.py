"""What a backend may leave behind: threads, child processes, open files, shared memory."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

_SERVERS = ("core-", "asyncio_")  # how names of the server's own threads begin
_PATIENCE_S = 5.0  # a process that was told to end takes a moment


def threads() -> set[threading.Thread]:
    """The threads that Python knows, without those of the server."""
    return {each for each in threading.enumerate() if not each.name.startswith(_SERVERS)}


def children() -> set[int]:
    """Process ids of this process's children; empty where there is no /proc."""
    found: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(map(int, task.read_text().split()))
        except OSError:  # the thread has ended since
            continue
    return found


def shared_memory() -> set[str]:
    """Names of POSIX shared memory objects; empty where they are no files."""
    folder = Path("/dev/shm")
    return set(os.listdir(folder)) if folder.is_dir() else set()


def open_files() -> int:
    """How many file descriptors are open; 0 where there is no /proc."""
    return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0


def settles(holds: Callable[[], bool]) -> bool:
    """Whether `holds()` becomes true within a few seconds."""
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
