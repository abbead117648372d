"""Watch: what has to be looked at while the server runs, so that it can be told when somebody asks."""

from __future__ import annotations

import asyncio

from core.control.metrics.versions import VersionLabels
from core.options import Options
from core.telemetry.families import Family
from core.telemetry.metrics.gpus import Gpus
from core.telemetry.metrics.lag import LoopLag
from core.telemetry.metrics.machine import Machine
from core.telemetry.metrics.process import Process


class Watch:
    """One for each server; started by who serves metrics. Loop thread only.

    worker   number of this process among several, None if it is the only one
    """

    def __init__(self, options: Options, worker: int | None = None):
        self._interval_s = options.metrics_interval_ms / 1000
        self._labels = {} if worker is None else {"worker": str(worker)}
        self._machine = Machine() if options.allow_cpu_metrics else None
        self.gpus = Gpus(self._interval_s)
        self.labels = VersionLabels(self.gpus.uuid)
        self._with_gpus = options.allow_gpu_metrics
        self._process = Process()
        self._lag = LoopLag()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look from now on."""
        self._lag.start(loop)
        if self._with_gpus:
            self.gpus.start()

    def stop(self) -> None:
        """Look no more."""
        self._lag.stop()
        self.gpus.stop()

    def families(self) -> list[Family]:
        """Machine, GPUs and this process, as of now or of the last interval."""
        return [
            *(self._machine.families(self._interval_s) if self._machine else []),
            *self.gpus.families(),
            *self._process.families(self._interval_s, self._labels),
            *self._lag.families(self._labels),
        ]
