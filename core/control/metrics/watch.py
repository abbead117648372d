"""Watch: the metric sources of a server, which plugins bring."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from core import plugins
from core.control.metrics.versions import VersionLabels
from core.errors import internal, invalid
from core.options import Options
from core.telemetry.families import Family
from core.telemetry.metrics.catalog import CATALOG
from core.telemetry.metrics.source import MetricSource
from core.telemetry.registry import registry

logger = logging.getLogger("core")


class Watch:
    """The metric sources of a server. Event loop only; the frontend that serves metrics starts them.

    worker   number of this process among several, None if it is the only one
    """

    def __init__(self, options: Options, worker: int | None = None):
        self._sources = open_sources(options, worker)
        self.labels = VersionLabels(self._gpu_uuid)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start every source. Raises what a source raises."""
        for source in self._sources.values():
            source.start(loop)

    def stop(self) -> None:
        """Stop every source. An exception of a source is only logged."""
        for plugin, source in self._sources.items():
            try:
                source.stop()
            except Exception:
                logger.exception("metrics of plugin '%s' cannot be stopped", plugin)

    def families(self) -> list[Family]:
        """Return the families of all sources. A source that raises an exception is left out and logged.

        A source that reads at intervals has the values of its last reading.
        """
        found: list[Family] = []
        for plugin, source in self._sources.items():
            try:
                found += _declared(plugin, source)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                logger.error("metrics of plugin '%s' are left out: %s", plugin, reason)
        return found

    def _gpu_uuid(self, number: int) -> str | None:
        found = (source.gpu_uuid(number) for source in self._sources.values())
        return next(filter(None, found), None)


def open_sources(options: Options, worker: int | None = None) -> Mapping[str, MetricSource]:
    """Return plugin name → its source. Models cannot use the names of its families from now on.

    `worker` is as in Watch. Raises CoreError(INTERNAL) for what is no MetricSource, CoreError(INVALID) for a
    family that core or another plugin has, and what `plugins.ask_each` raises.
    """
    sources, taken = {}, set(CATALOG)
    for plugin, source in plugins.ask_each(
        "core_open_metric_source", options=options, worker=worker
    ):
        if not isinstance(source, MetricSource):
            raise internal(
                f"plugin '{plugin}' made a {type(source).__name__}, not a "
                "core.telemetry.metrics.source.MetricSource"
            )
        names = _names(source)
        if double := sorted(names & taken):
            raise invalid(f"metric family '{double[0]}' of plugin '{plugin}' exists already")
        taken |= names
        registry.reserve(names)
        sources[plugin] = source
    return sources


def _names(source: MetricSource) -> set[str]:
    return {entry.name for entries in source.catalog.values() for entry in entries}


def _declared(plugin: str, source: MetricSource) -> list[Family]:
    """Return the families of a plugin that are in its catalog; log each other one as an error."""
    names, found = _names(source), []
    for each in source.families():
        if each.name in names:
            found.append(each)
        else:
            text = "metric family '%s' of plugin '%s' is left out: it is not in its catalog"
            logger.error(text, each.name, plugin)
    return found
