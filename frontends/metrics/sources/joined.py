"""JoinedSources: several metric sources as one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from core.telemetry.families import Family
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource


class JoinedSources(MetricSource):
    """The families of all its sources, in their order. Event loop only."""

    def __init__(self, sources: Sequence[MetricSource]):
        self._sources = sources
        catalog: dict[str, Sequence[Entry]] = {}
        for each in sources:
            catalog.update(each.catalog)
        self.catalog: Mapping[str, Sequence[Entry]] = catalog

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        for each in self._sources:
            each.start(loop)

    def stop(self) -> None:
        for each in self._sources:
            each.stop()

    def families(self) -> Sequence[Family]:
        return [family for each in self._sources for family in each.families()]
