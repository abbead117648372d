"""Resource use of this process. Without /proc some metrics are missing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from core.system import platform
from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

_START_S = time.time()  # import of this module: the start of the process, or of the server in it


_ENTRIES = {
    name: Entry(f"core_process_{name}", kind, text)  # type: ignore[arg-type]
    for name, kind, text in (
        ("cpu_seconds", "counter", "CPU time of the process, user and system, in seconds"),
        ("resident_memory_bytes", "gauge", "Resident memory of the process, in bytes"),
        ("threads", "gauge", "Threads of the process"),
        ("open_descriptors", "gauge", "Open file descriptors of the process"),
        ("most_descriptors", "gauge", "Maximum number of open file descriptors"),
        ("start_time_seconds", "gauge", "Start time of the process, in seconds since the epoch"),
    )
}


class Process(MetricSource):
    """The metrics of this process.

    interval_s   shortest time between two readings
    labels       of every sample
    proc         folder of this process in the file system of the kernel, /proc/self
    clock        monotonic, in seconds
    """

    catalog = {"Process": list(_ENTRIES.values())}

    def __init__(
        self,
        interval_s: float,
        labels: Mapping[str, str] = {},
        proc: Path = platform.PROC / "self",
        clock: Callable[[], float] = time.monotonic,
    ):
        self._interval_s = interval_s
        self._labels = labels
        self._proc = proc
        self._clock = clock
        self._looked = float("-inf")
        self._values: dict[str, float] = {}

    def families(self) -> list[Family]:
        """Return the metrics that are known, read again if the last reading is older than the interval."""
        now = self._clock()
        if now - self._looked >= self._interval_s:
            self._looked = now
            self._values = self._look()
        return [
            _ENTRIES[name].family([Sample(self._labels, value)])
            for name, value in self._values.items()
        ]

    def _look(self) -> dict[str, float]:
        found: dict[str, float] = {"cpu_seconds": sum(os.times()[:2])}
        try:
            pages = int((self._proc / "statm").read_text().split()[1])
            found["resident_memory_bytes"] = pages * os.sysconf("SC_PAGE_SIZE")
            # The name of the program, in parentheses, may contain spaces and parentheses: split after it.
            stat = (self._proc / "stat").read_text().rpartition(")")[2].split()
            found["threads"] = int(stat[17])
        except (OSError, IndexError, ValueError):  # the kernel has no such file
            pass
        with suppress(OSError):
            folder = "/dev/fd" if platform.PORTABLE else self._proc / "fd"
            found["open_descriptors"] = len(os.listdir(folder))
        if resource is not None:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            found["most_descriptors"] = soft if soft != resource.RLIM_INFINITY else float("inf")
        found["start_time_seconds"] = _START_S
        return found
