"""ServerCpu: processor time of the processes that listen on a port of this machine, and of their children."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path

from core_bench.model.address import Address

_LISTEN = "0A"


class ServerCpu:
    """Finds the processes once, and sums the clocks of all that live. The load generator is not one of them.

    reason   why nothing is found; "" if something is
    """

    def __init__(self, address: Address):
        self._pids: set[int] = set()
        self.reason = ""
        if not _is_local(address):
            self.reason = "the server is on another machine"
            return
        inodes = _listening(address)
        self._pids = _holders(inodes) - {os.getpid()}
        if not self._pids:
            self.reason = "its process is not visible here (another user, or a container)"

    def seconds(self) -> dict[int, float]:
        """Return the processor time of each process so far. A process that has ended is left out."""
        found = {}
        for pid in self._pids | _descendants(self._pids):
            try:
                # The clock of another process, as clock_getcpuclockid(3) makes it: nanoseconds, all threads.
                found[pid] = time.clock_gettime((~pid << 3) | 2)
            except OSError:
                continue
        return found


def used(before: dict[int, float], after: dict[int, float]) -> float | None:
    """Return the seconds between two readings; None if a process has ended, or there is none."""
    if not before or not set(before) <= set(after):
        return None
    return sum(value - before.get(pid, 0.0) for pid, value in after.items())


def _is_local(address: Address) -> bool:
    if not address.port:
        return True
    try:
        found = socket.getaddrinfo(address.host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, _, _, where in found:
        with socket.socket(family, kind) as tried:
            try:
                tried.bind(where)  # only addresses of this machine can be bound
            except OSError:
                continue
            return True
    return False


def _listening(address: Address) -> set[str]:
    """Return the inodes of the sockets that listen on the port, or on the path."""
    inodes = set()
    if not address.port:
        for line in _lines("/proc/net/unix"):
            fields = line.split()
            if len(fields) >= 8 and fields[7] == address.host:
                inodes.add(fields[6])
        return inodes
    wanted = f":{address.port:04X}"
    for line in [*_lines("/proc/net/tcp"), *_lines("/proc/net/tcp6")]:
        fields = line.split()
        if fields[1].endswith(wanted) and fields[3] == _LISTEN:
            inodes.add(fields[9])
    return inodes


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()[1:]
    except OSError:
        return []


def _holders(inodes: Iterable[str]) -> set[int]:
    wanted = {f"socket:[{each}]" for each in inodes}
    found = set()
    for process in Path("/proc").iterdir() if wanted and Path("/proc").is_dir() else ():
        if not process.name.isdecimal():
            continue
        try:
            if any(os.readlink(each) in wanted for each in (process / "fd").iterdir()):
                found.add(int(process.name))
        except OSError:
            continue
    return found


def _descendants(pids: set[int]) -> set[int]:
    found: set[int] = set()
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
        except OSError:
            continue
        for task in tasks:
            try:
                children = [int(each) for each in (task / "children").read_text().split()]
            except OSError:
                continue
            new = [each for each in children if each not in found]
            found.update(new)
            waiting += new
    return found
