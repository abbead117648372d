"""MetricSource: metrics of one origin, such as the machine, the process, or what a plugin measures.

Watch ─► [MetricSource] ─► families of a scrape
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from core.telemetry.families import Family
from core.telemetry.metrics.catalog import Entry


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
