"""MetricSource: metrics of one origin, such as the machine, the process or a cache.

Watch ─► [MetricSource] ─► families of a scrape
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from core.telemetry.families import Family
from core.telemetry.metrics.catalog import Entry


class MetricSource:
    """Base class of sources. All calls run on the event loop and delay requests: return within 1 ms.

    A source that queries a driver, a disk or a network must do so in its own thread, from `start` to `stop`.

    catalog   title → metric families of the source: a section of docs/operate/metrics.md
    """

    catalog: Mapping[str, Sequence[Entry]] = {}

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to measure; scrapes may follow from now on."""

    def stop(self) -> None:
        """Stop measuring. Must not wait. A second call must do nothing."""

    def families(self) -> Sequence[Family]:
        """Return the current values. Called once per scrape."""
        return ()

    def gpu_uuid(self, number: int) -> str | None:
        """Return the UUID of a GPU, for the labels of models; None if unknown.

        number   of the GPU, in the numbering of frameworks
        """
        return None
