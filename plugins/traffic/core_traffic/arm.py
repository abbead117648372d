"""Arm: one version of a model that shares its traffic, as a set of counters."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from core.errors import CoreError, Kind
from core.native.distribution import QuantileSketch, middle_of

RESULTS = ("success", "error", "refused", "cancelled")
PERIODS = 5  # of a window; a QuantileSketch has as many

# The client's own mistakes, and what a client may not do.
_REFUSED = frozenset(
    {
        *(Kind.INVALID, Kind.NOT_FOUND, Kind.UNSUPPORTED, Kind.ALREADY_EXISTS),
        *(Kind.UNAUTHENTICATED, Kind.FORBIDDEN),
    }
)


def result_of(error: CoreError | None) -> str:
    """Return the name of a result, one of RESULTS; `error` is that of the request, or None."""
    if error is None:
        return "success"
    if error.kind is Kind.CANCELLED:
        return "cancelled"
    return "refused" if error.kind in _REFUSED else "error"


class Arm:
    """Counters of the requests that one version has got by its share, not by its number. Event loop only.

    results     result → number of requests that have ended so
    in_flight   requests without their last response
    window_s    length of the window in which `recent` counts
    slow_ns     a client that goes away after so long counts in the window too; 0 for none
    """

    def __init__(self, window_s: float, clock_ns: Callable[[], int] = time.monotonic_ns):
        self.results = dict.fromkeys(RESULTS, 0)
        self.in_flight = 0
        self.slow_ns = 0
        self._clock_ns = clock_ns
        self.begin_window(window_s)

    def begin_window(self, window_s: float) -> None:
        """Begin an empty window. Its oldest fifth is dropped whenever a fifth of its time has passed."""
        self.window_s = window_s
        self._period_ns = max(1, int(window_s * 1e9 / PERIODS))
        self._ends_ns = self._clock_ns() + self._period_ns
        self._latencies = QuantileSketch()
        # Requests that have ended with success or with an error, and those with an error, by period.
        self._counts: deque[list[int]] = deque([[0, 0]], PERIODS)

    def ended(self, result: str, latency_ns: int) -> None:
        """Count a request that has ended.

        result       one of RESULTS
        latency_ns   until its first response
        """
        self.results[result] += 1
        gave_up = result == "cancelled" and 0 < self.slow_ns <= latency_ns
        if gave_up or result in ("success", "error"):
            self._turn()
            self._counts[-1][0] += 1
            self._counts[-1][1] += result == "error"
            self._latencies.observe(latency_ns)

    def recent(self) -> dict[str, Any]:
        """Return the requests of the window, those of them with an error, and cells of their latencies."""
        self._turn()
        return {
            "requests": sum(requests for requests, _ in self._counts),
            "errors": sum(errors for _, errors in self._counts),
            "cells": self._latencies.recent()[2],
        }

    def _turn(self) -> None:
        now = self._clock_ns()
        if now - self._ends_ns > self._period_ns * PERIODS:
            self.begin_window(self.window_s)
        while now >= self._ends_ns:
            self._ends_ns += self._period_ns
            self._latencies.turn()
            self._counts.append([0, 0])


def quantile_ms(cells: Mapping[int, int], quantile: float) -> float | None:
    """Return a quantile of latencies in milliseconds, within 1 %; None without latencies.

    cells   of a QuantileSketch
    """
    rank, below = max(1, math.ceil(quantile * sum(cells.values()))), 0
    for cell, count in sorted(cells.items()):
        below += count
        if below >= rank:
            return middle_of(cell) / 1e6
    return None
