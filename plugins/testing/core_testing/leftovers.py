"""What a backend may leave behind: threads, child processes, open files, shared memory."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

_SERVERS = ("core-", "asyncio_")  # how names of the server's own threads begin
_PATIENCE_S = 5.0  # a process that was told to end takes a moment


def threads() -> set[threading.Thread]:
    """The threads that Python knows, without those of the server."""
    return {each for each in threading.enumerate() if not each.name.startswith(_SERVERS)}


def children(parent: int = 0) -> set[int]:
    """Process ids of a process's children, by default of this one; empty where there is no /proc.

    By what each process says of its parent: /proc/PID/task/TID/children has those of one thread, which
    another thread takes over when it ends, and who reads meanwhile misses them.
    """
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, rest = stat.read_text().partition(" (")
        except OSError:  # it has ended since
            continue
        if int(rest.rpartition(") ")[2].split()[1]) == (parent or os.getpid()):
            found.add(int(pid))
    return found


def shared_memory() -> set[str]:
    """Names of POSIX shared memory objects of the whole machine; empty where they are no files."""
    folder = Path("/dev/shm")
    return set(os.listdir(folder)) if folder.is_dir() else set()


def new_shared_memory(before: set[str]) -> set[str]:
    """Names that were not there `before`, without those that only processes have which are not our own."""
    found = shared_memory() - before
    return found - _mapped_elsewhere() if found else found


def _mapped_elsewhere() -> set[str]:
    ours = {os.getpid(), *children()}
    names: set[str] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        if int(maps.parent.name) in ours:
            continue
        try:
            text = maps.read_text(errors="replace")
        except OSError:  # it has ended since, or is somebody else's
            continue
        for line in text.splitlines():
            if (place := line.find("/dev/shm/")) >= 0:
                names.add(line[place + len("/dev/shm/") :].removesuffix(" (deleted)"))
    return names


def open_files() -> int:
    """How many file descriptors are open; 0 where there is no /proc."""
    return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0


def resident_bytes() -> int:
    """Memory of this process that is in RAM; 0 where there is no /proc."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def left(found: Callable[[], Collection[object]]) -> str:
    """What `found()` still has after a few seconds, in words; "" once it has nothing."""
    last: Collection[object] = ()

    def none() -> bool:
        nonlocal last
        last = found()
        return not last

    return "" if settles(none) else ", ".join(sorted(map(_shown, last)))


def _shown(thing: object) -> str:
    return f"'{thing.name}'" if isinstance(thing, threading.Thread) else str(thing)


def settles(holds: Callable[[], bool]) -> bool:
    """Whether `holds()` becomes true within a few seconds."""
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
