"""CPU time and memory of a server's processes, read from /proc. Linux only.

A server's processes are the descendants of its first process, and all processes of that process's session: a
child whose parent has ended still belongs to the session.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


@dataclass(frozen=True)
class Stat:
    """One line of /proc/PID/stat.

    ticks   user and system time, with that of children that were waited for
    """

    pid: int
    parent: int
    session: int
    ticks: int


def read_stat(text: str) -> Stat:
    """Parse one stat line; the command in it may contain spaces and parentheses."""
    pid = int(text.partition(" ")[0])
    fields = text.rpartition(")")[2].split()
    return Stat(pid, int(fields[1]), int(fields[3]), sum(map(int, fields[11:15])))


def tree(root: int) -> list[Stat]:
    """Return the processes of the server with the first process `root`; empty if all have ended."""
    return members(root, _all())


def members(root: int, everybody: Iterable[Stat]) -> list[Stat]:
    """Return the processes that are `root`, its descendants, or in the session that it leads."""
    by_pid = {each.pid: each for each in everybody}

    def belongs(each: Stat) -> bool:
        if each.session == root:
            return True
        seen: Stat | None = each
        while seen is not None and seen.pid != root:
            seen = by_pid.get(seen.parent)
        return seen is not None

    return [each for each in by_pid.values() if belongs(each)]


def _all() -> Iterable[Stat]:
    for entry in PROC.glob("[0-9]*/stat"):
        try:
            yield read_stat(entry.read_text())
        except OSError:  # ended meanwhile
            continue


def cpu_seconds(root: int) -> float:
    """Return the CPU time of the server's processes so far, user and system; resolution one tick (10 ms)."""
    return sum(each.ticks for each in tree(root)) / TICKS_PER_SECOND


def pss_bytes(root: int) -> int:
    """Return the proportional set size: each page counts divided by the number of processes that map it."""
    return sum(_rollup(each.pid) for each in tree(root))


def _rollup(pid: int) -> int:
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:  # ended meanwhile
        return 0
    return next((_kib(line) for line in lines if line.startswith("Pss:")), 0)


def alone_bytes(root: int) -> int:
    """Return the memory of the server's processes as if they were the only ones on the machine.

    Pages of files count once, also if other programs map the same file. This benchmark runs on the same
    interpreter as some of the servers, which reduces their proportional set size.
    """
    files: dict[tuple[str, ...], int] = {}
    own = 0
    for each in tree(root):
        try:
            text = (PROC / str(each.pid) / "smaps").read_text(errors="replace")
        except OSError:  # ended meanwhile
            continue
        for key, sizes in mappings(text):
            if key is None:
                own += sizes["Pss"]
            else:
                own += sizes["Anonymous"]  # the modified private pages of a file
                files[key] = max(files.get(key, 0), sizes["Rss"] - sizes["Anonymous"])
    return own + sum(files.values())


def mappings(text: str) -> Iterable[tuple[tuple[str, ...] | None, dict[str, int]]]:
    """Yield each mapping: (device, inode and offset; None without a file), and sizes in bytes."""
    key: tuple[str, ...] | None = None
    sizes: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        if words[0].endswith(":"):
            if words[0] in ("Rss:", "Pss:", "Anonymous:"):
                sizes[words[0][:-1]] = _kib(line)
            continue
        if sizes:
            yield key, sizes
        key, sizes = None if words[4] == "0" else (words[3], words[4], words[2]), {}
    if sizes:
        yield key, sizes


def _kib(line: str) -> int:
    return int(line.split()[1]) * 1024
