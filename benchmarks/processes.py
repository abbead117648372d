"""What a server's processes use: CPU time and memory, read from /proc.  Linux only.

A server's processes are those below its first one and those of the first one's session: a child whose
parent has ended belongs to the session still.
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

    ticks   user and system time, that of children waited for included
    """

    pid: int
    parent: int
    session: int
    ticks: int


def read_stat(text: str) -> Stat:
    """The fields of one stat line; the command in it may hold spaces and parentheses."""
    pid = int(text.partition(" ")[0])
    fields = text.rpartition(")")[2].split()
    return Stat(pid, int(fields[1]), int(fields[3]), sum(map(int, fields[11:15])))


def tree(root: int) -> list[Stat]:
    """The processes of the server whose first one is `root`; empty when all have ended."""
    return members(root, _all())


def members(root: int, everybody: Iterable[Stat]) -> list[Stat]:
    """Those of `everybody` that are `root`, below it, or in the session that it leads."""
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
    """User and system time of the server's processes so far; its resolution is one tick (10 ms)."""
    return sum(each.ticks for each in tree(root)) / TICKS_PER_SECOND


def pss_bytes(root: int) -> int:
    """Proportional set size: each page divided by the processes that map it, whoever they are."""
    return sum(_rollup(each.pid) for each in tree(root))


def _rollup(pid: int) -> int:
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:  # ended meanwhile
        return 0
    return next((_kib(line) for line in lines if line.startswith("Pss:")), 0)


def alone_bytes(root: int) -> int:
    """Memory of the server's processes as if they were the only ones on the machine.

    Pages of files count once, also when other programs map the same file: this benchmark runs on the
    same interpreter as some of the servers, and would make them look smaller than they are.
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
                own += sizes["Anonymous"]  # of a file's private pages those that were written to
                files[key] = max(files.get(key, 0), sizes["Rss"] - sizes["Anonymous"])
    return own + sum(files.values())


def mappings(text: str) -> Iterable[tuple[tuple[str, ...] | None, dict[str, int]]]:
    """(device, inode and offset, or None for memory of no file; sizes in bytes) of each mapping."""
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
