"""MetricSource: metrics of one origin, such as the machine, the process, or what a plugin measures.

Watch ─► [MetricSource] ─► families of a scrape
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from core import plugins
from core.errors import internal, invalid
from core.options import Options
from core.telemetry.families import Family
from core.telemetry.metrics.catalog import CATALOG, Entry
from core.telemetry.registry import registry

logger = logging.getLogger("core")


class MetricSource:
    """Base class of sources. All calls come from the event loop, where requests wait: return within 1 ms.

    A source that asks a driver, a disk or a network does so in a thread of its own, from `start` to `stop`.

    catalog   title → metric families of the source: a section of docs/metrics.md
    """

    catalog: Mapping[str, Sequence[Entry]] = {}

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to measure: metrics are served from now on."""

    def stop(self) -> None:
        """Stop to measure. Must not wait. A second call must do nothing."""

    def families(self) -> Sequence[Family]:
        """Return the current values. Called once per scrape."""
        return ()

    def gpu_uuid(self, number: int) -> str | None:
        """Return the UUID of a GPU, for the labels of models; None if unknown.

        number   of the GPU, as frameworks count
        """
        return None


class PluginSource(MetricSource):
    """The source of a plugin. Its errors are logged and do not reach a scrape.

    Raises CoreError(INTERNAL) if it is no MetricSource, CoreError(INVALID) if its catalog has a family that
    core or another plugin has.
    """

    def __init__(self, plugin: str, source: object, taken: set[str]):
        if not isinstance(source, MetricSource):
            raise internal(
                f"plugin '{plugin}' made a {type(source).__name__}, not a "
                "core.telemetry.metrics.source.MetricSource"
            )
        self.catalog = source.catalog
        self._plugin = plugin
        self._source = source
        self._names = {entry.name for entries in source.catalog.values() for entry in entries}
        if double := sorted(self._names & taken):
            raise invalid(f"metric family '{double[0]}' of plugin '{plugin}' exists already")
        taken |= self._names
        registry.reserve(self._names)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """An exception ends the start of the server."""
        self._source.start(loop)

    def stop(self) -> None:
        """See MetricSource."""
        try:
            self._source.stop()
        except Exception:
            logger.exception("metrics of plugin '%s' cannot be stopped", self._plugin)

    def families(self) -> Sequence[Family]:
        """Return the families that are in the catalog of the source."""
        try:
            found = self._source.families()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            logger.error("metrics of plugin '%s' are left out: %s", self._plugin, reason)
            return ()
        for each in found:
            if each.name not in self._names:
                logger.error(
                    "metric family '%s' of plugin '%s' is left out: it is not in its catalog",
                    each.name,
                    self._plugin,
                )
        return [each for each in found if each.name in self._names]

    def gpu_uuid(self, number: int) -> str | None:
        """See MetricSource."""
        return self._source.gpu_uuid(number)


def open_sources(options: Options) -> list[MetricSource]:
    """Return the sources of all plugins. Raises what a plugin raises, and what PluginSource does."""
    taken = set(CATALOG)
    return [
        PluginSource(plugin, found, taken)
        for plugin, found in plugins.ask_each("core_open_metric_source", options=options)
    ]
