"""CPU and memory of the machine, from /proc; no metrics without /proc."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from core.system import platform
from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource

_ENTRIES = {
    f"nv_cpu_{name}": Entry(
        f"nv_cpu_{name}", "gauge", text, (), "unless `--allow-cpu-metrics=false`", "first"
    )
    for name, text in (
        ("utilization", "CPU utilization rate [0.0 - 1.0]"),
        ("memory_total_bytes", "CPU total memory (RAM), in bytes"),
        ("memory_used_bytes", "CPU used memory (RAM), in bytes"),
    )
}


class Machine(MetricSource):
    """The three gauges of the machine.

    interval_s   shortest time between two readings
    proc         file system of the kernel
    clock        monotonic, in seconds
    """

    catalog = {"Processors and memory of the machine": list(_ENTRIES.values())}

    def __init__(
        self,
        interval_s: float,
        proc: Path = platform.PROC,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._interval_s = interval_s
        self._proc = proc
        self._clock = clock
        self._values: dict[str, float] = {}  # of the last reading
        self._looked = float("-inf")
        self._busy, self._total = self._ticks()  # since the machine started

    def families(self) -> list[Family]:
        """Return the gauges that are known, read again if the last reading is older than the interval."""
        now = self._clock()
        if now - self._looked >= self._interval_s:
            self._looked = now
            self._look()
        return [_ENTRIES[name].family([Sample({}, value)]) for name, value in self._values.items()]

    def _look(self) -> None:
        busy, total = self._ticks()
        if total > self._total:
            share = (busy - self._busy) / (total - self._total)
            self._values["nv_cpu_utilization"] = min(max(share, 0.0), 1.0)
            self._busy, self._total = busy, total
        memory = self._memory()
        if "MemTotal" in memory and "MemAvailable" in memory:
            self._values["nv_cpu_memory_total_bytes"] = memory["MemTotal"]
            self._values["nv_cpu_memory_used_bytes"] = memory["MemTotal"] - memory["MemAvailable"]

    def _ticks(self) -> tuple[int, int]:
        """Return (busy, all): ticks of all cores since the machine started; (0, 0) without /proc/stat.

        Busy is all but idle and waiting for I/O.
        """
        try:
            first = (self._proc / "stat").read_text().partition("\n")[0]
        except OSError:
            return 0, 0
        # user nice system idle iowait irq softirq steal; guest time is part of user time
        ticks = [int(number) for number in first.split()[1:9]]
        return sum(ticks) - sum(ticks[3:5]), sum(ticks)

    def _memory(self) -> dict[str, int]:
        """Return name → bytes of the values in /proc/meminfo; empty without that file."""
        try:
            lines = (self._proc / "meminfo").read_text().splitlines()
        except OSError:
            return {}
        rows = (line.replace(":", " ").split() for line in lines)
        return {row[0]: int(row[1]) * 1024 for row in rows if len(row) == 3 and row[2] == "kB"}
