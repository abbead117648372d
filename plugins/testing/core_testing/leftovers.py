"""Find leaks of a backend: threads, child processes, open files, shared memory."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core_testing.served import Served

_SERVERS = ("core-", "asyncio_")  # prefixes of the names of the server's own threads
_PATIENCE_S = 5.0  # the time that a process may need to end


def threads() -> set[threading.Thread]:
    """Return the threads of Python, without those of the server."""
    return {each for each in threading.enumerate() if not each.name.startswith(_SERVERS)}


def children(parent: int = 0) -> set[int]:
    """Return the process ids of the children of a process; empty without /proc.

    parent   process id; 0 for this process
    It reads the parent of each process. /proc/PID/task/TID/children would be incomplete: it lists the
    children of one thread, and a read misses them while they move from a thread that ends to another one.
    """
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, rest = stat.read_text().partition(" (")
        except OSError:  # the process has ended meanwhile
            continue
        if int(rest.rpartition(") ")[2].split()[1]) == (parent or os.getpid()):
            found.add(int(pid))
    return found


def processor_s() -> float:
    """Return the seconds that processors have worked for this process and for its children that run."""
    ticks = 0
    for pid in children():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:  # the child has ended meanwhile
            continue
        ticks += sum(map(int, stat.rpartition(") ")[2].split()[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def shared_memory() -> set[str]:
    """Return the names of all POSIX shared-memory objects of the machine; empty without /dev/shm."""
    folder = Path("/dev/shm")
    return set(os.listdir(folder)) if folder.is_dir() else set()


def new_shared_memory(before: set[str]) -> set[str]:
    """Return the names of shared-memory objects that are not in `before`.

    Leaves out those that a process other than this one and its children maps.
    """
    found = shared_memory() - before
    if not found:
        return found
    elsewhere = _mapped_elsewhere()
    return {each for each in found if _inode(each) not in elsewhere}


def _inode(name: str) -> int:
    try:
        return os.stat(f"/dev/shm/{name}").st_ino
    except OSError:  # it has gone meanwhile
        return 0


def _mapped_elsewhere() -> set[int]:
    """Return inodes, since a semaphore is mapped under a name that it had before: 0 and those of /dev/shm."""
    ours = {os.getpid(), *children()}
    inodes = {0}
    for maps in Path("/proc").glob("[0-9]*/maps"):
        if int(maps.parent.name) in ours:
            continue
        try:
            text = maps.read_text(errors="replace")
        except OSError:  # the process has ended meanwhile, or belongs to another user
            continue
        # address, permissions, offset, device, inode, path
        inodes |= {int(line.split()[4]) for line in text.splitlines() if " /dev/shm/" in line}
    return inodes


def open_files() -> int:
    """Return the number of open file descriptors of this process; 0 without /proc."""
    return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0


def resident_bytes() -> int:
    """Return the bytes of this process that are in RAM; 0 without /proc."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(act: Callable[[], object], calls: int) -> int:
    """Return by how many bytes in RAM this process grows over so many calls: the less of two times.

    A leak grows each time. Pages that the system had taken away, and those of other threads, come once.
    """
    grown = []
    for _ in range(2):
        before = resident_bytes()
        for _ in range(calls):
            act()
        gc.collect()
        grown.append(resident_bytes() - before)
    return min(grown)


def growth_by_loads(served: Served, name: str, ask: Callable[[], object], loads: int) -> int:
    """Return by how many bytes in RAM this process grows over so many loads of a model, each with an answer.

    The model is loaded before. The first fifth of the loads is not counted. Each load comes after an unload,
    because a load of a model whose files are unchanged does nothing.
    """

    def act() -> None:
        served.unload(name)
        served.load(name)
        ask()

    for _ in range(loads // 5):
        act()
    return growth(act, 2 * loads // 5)


def left(found: Callable[[], Collection[object]]) -> str:
    """Wait until `found()` is empty and return "". After a few seconds, return the rest as text."""
    last: Collection[object] = ()

    def none() -> bool:
        nonlocal last
        last = found()
        return not last

    return "" if settles(none) else ", ".join(sorted(map(_shown, last)))


def _shown(thing: object) -> str:
    return f"'{thing.name}'" if isinstance(thing, threading.Thread) else str(thing)


def settles(holds: Callable[[], bool]) -> bool:
    """Return whether `holds()` becomes true within a few seconds."""
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
