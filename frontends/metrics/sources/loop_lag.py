"""The lag of the event loop: how late a timer runs. Whatever blocks the loop delays every request as much."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from core.native.distribution import Histogram
from core.telemetry.families import Family, histogram_samples
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource

EVERY_S = 0.5
BUCKETS_S = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5)


_ENTRY = Entry(
    "core_event_loop_lag_seconds",
    "histogram",
    "Delay of a timer on the event loop, measured twice per second",
)


class LoopLag(MetricSource):
    """A timer that measures its own delay.

    labels   of every sample
    """

    catalog = {"Event loop": [_ENTRY]}

    def __init__(self, labels: Mapping[str, str] = {}) -> None:
        self._labels = labels
        self._histogram = Histogram(BUCKETS_S, 1_000_000_000)
        self._timer: asyncio.TimerHandle | None = None
        self._running = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the timer. A second call does nothing."""
        if not self._running:
            self._running = True
            self._wait(loop)

    def stop(self) -> None:
        """Stop the timer."""
        self._running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def families(self) -> list[Family]:
        """Return the histogram of all delays since the first start; nothing while the timer does not run."""
        if not self._running:
            return []
        seen = self._histogram
        total_s = seen.sum_ns / 1e9
        samples = histogram_samples(self._labels, seen.bounds, seen.counts(), total_s)
        return [_ENTRY.family(samples)]

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        due_s = loop.time() + EVERY_S
        self._timer = loop.call_at(due_s, self._look, loop, due_s)

    def _look(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        self._histogram.observe(max(0, int((loop.time() - due_s) * 1e9)))
        self._wait(loop)
