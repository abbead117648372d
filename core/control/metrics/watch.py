"""Watch: the metric sources of a server, of core and of plugins."""

from __future__ import annotations

import asyncio

from core.control.metrics.versions import VersionLabels
from core.options import Options
from core.telemetry.families import Family
from core.telemetry.metrics.lag import LoopLag
from core.telemetry.metrics.machine import Machine
from core.telemetry.metrics.process import Process
from core.telemetry.metrics.source import MetricSource, open_sources


class Watch:
    """One for each server. Event loop only; the frontend that serves metrics starts it.

    worker   number of this process among several, None if it is the only one
    """

    def __init__(self, options: Options, worker: int | None = None):
        interval_s = options.metrics_interval_ms / 1000
        labels = {} if worker is None else {"worker": str(worker)}
        self._sources: list[MetricSource] = [
            *([Machine(interval_s)] if options.allow_cpu_metrics else []),
            *open_sources(options),
            Process(interval_s, labels),
            LoopLag(labels),
        ]
        self.labels = VersionLabels(self._gpu_uuid)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to measure."""
        for source in self._sources:
            source.start(loop)

    def stop(self) -> None:
        """Stop to measure."""
        for source in self._sources:
            source.stop()

    def families(self) -> list[Family]:
        """Return the families of all sources, with values of now or of the last interval."""
        return [family for source in self._sources for family in source.families()]

    def _gpu_uuid(self, number: int) -> str | None:
        return next(filter(None, (source.gpu_uuid(number) for source in self._sources)), None)
