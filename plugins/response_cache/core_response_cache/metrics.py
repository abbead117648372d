"""Metrics of the response cache."""

from __future__ import annotations

from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource
from core_response_cache.coalescing import Coalescing

_SHARED = Entry(
    "core_cache_shared",
    "counter",
    "Requests that were answered by the execution of an equal request",
    (),
    "with `coalesce=true` in `--cache-config`",
)


class CacheMetrics(MetricSource):
    """The metrics of one server. Event loop only.

    cache   set at the start of a server with `coalesce=true`
    """

    catalog = {"Response cache (plugin `core-response-cache`)": [_SHARED]}

    def __init__(self) -> None:
        self.cache: Coalescing | None = None

    def families(self) -> list[Family]:
        """Return the current values."""
        return [] if self.cache is None else [_SHARED.family([Sample({}, self.cache.shared)])]
