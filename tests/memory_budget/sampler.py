"""Samples of the memory that the kernel counts for a server and its child processes."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from benchmarks import processes

EVERY_S = 0.05


def private_bytes(pid: int) -> int:
    """Return the private memory of a process and of those that it has started, in bytes.

    RssAnon and RssShmem. A page that several of them share counts for each: more than there is, never less.
    (`smaps_rollup` would not count it twice, but takes milliseconds of a core that the server needs.) A
    process that has not executed its program yet has the memory of the one that starts it: it does not count.
    """
    size = 0
    program = _program(pid)
    for each in processes.tree(pid):
        if each.pid != pid and _program(each.pid) == program:
            continue
        try:
            text = Path(f"/proc/{each.pid}/status").read_text()
        except OSError:  # it has ended
            continue
        for line in text.splitlines():
            name, _, rest = line.partition(":")
            if name in ("RssAnon", "RssShmem"):
                size += int(rest.split()[0]) * 1024
    return size


def _program(pid: int) -> bytes:
    """Return the command line of a process; b"" if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Sampler:
    """Samples of what models take, from `start` to `stop`, in bytes.

    loaded      bytes of the models that are loaded now: all else is that of the server itself
    longest_s   between two samples, or from the last one to `stop`
    due         samples that a machine with time for all of them takes from `start` to `stop`
    """

    def __init__(self, pid: int, loaded: int):
        self._pid = pid
        self._others = private_bytes(pid) - loaded
        self.samples: list[int] = []
        self.longest_s = 0.0
        self.due = 0
        self._begun = self._last = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._begun = self._last = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        self._note()  # also if the thread has ended before, by an error
        self.due = int((time.monotonic() - self._begun) / EVERY_S)

    def _run(self) -> None:
        at = self._begun
        while True:
            # The time that a sample takes does not delay the next one; one that is missed is not made up for.
            at = max(at + EVERY_S, time.monotonic())
            if self._ended.wait(at - time.monotonic()):
                return
            self.samples.append(private_bytes(self._pid) - self._others)
            self._note()

    def _note(self) -> None:
        now = time.monotonic()
        self.longest_s, self._last = max(self.longest_s, now - self._last), now
