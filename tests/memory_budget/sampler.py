"""Samples of the memory that the kernel counts for a server and its child processes."""

from __future__ import annotations

import threading
from pathlib import Path

from benchmarks import processes

EVERY_S = 0.05


def private_bytes(pid: int) -> int:
    """Return the private memory of a process and of those that it has started, in bytes.

    RssAnon and RssShmem of the server; Pss of the others, whose pages are shared with each other.
    """
    size = 0
    for each in processes.tree(pid):
        try:
            if each.pid == pid:
                text = Path(f"/proc/{pid}/status").read_text()
                names: tuple[str, ...] = ("RssAnon", "RssShmem")
            else:
                text = Path(f"/proc/{each.pid}/smaps_rollup").read_text()
                names = ("Pss_Anon", "Pss_Shmem")
        except OSError:  # it has ended
            continue
        for line in text.splitlines():
            name, _, rest = line.partition(":")
            if name in names:
                size += int(rest.split()[0]) * 1024
    return size


class Sampler:
    """Samples from `start` to `stop`, beyond what the server took before; `most` is the largest, in bytes."""

    def __init__(self, pid: int):
        self._pid = pid
        self.before = private_bytes(pid)
        self.samples: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def most(self) -> int:
        return max(self.samples, default=0)

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            self.samples.append(private_bytes(self._pid) - self.before)
