"""DriftMeter: sketches of the tensors in the records of the last minutes, for the metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from core_capture.drift.sketches import Key, Sketches, TensorSketch
from core_capture.records.record import Record

QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
_BUSY = 0.1  # share of the time of the writer's thread that sketches may take
_PUBLISHED_S = 5.0  # between two computations of what the metrics show
_LEAST = 10  # times that a class must have come: a text of a user comes once
_SHOWN = 20  # classes of one tensor


class TensorFacts(NamedTuple):
    """What the metrics show of a tensor."""

    key: Key
    elements: int
    nan_share: float
    mean: float
    quantiles: Sequence[float]
    classes: dict[str, float]


class DriftMeter:
    """Sketches records, as many as a tenth of the time of a thread allows. `add` on writers' threads.

    window_s   length of a window; the facts are those of the current and the last window
    """

    def __init__(
        self,
        predicted: Sequence[str],
        window_s: float,
        clock_s: Callable[[], float] = time.monotonic,
    ):
        self._facts: Sequence[TensorFacts] = ()  # replaced as a whole
        self._lock = threading.Lock()
        self._predicted = predicted
        self._window_s = window_s
        self._clock_s = clock_s
        self._last = Sketches(predicted)
        self._current = Sketches(predicted)
        self._began_s = clock_s()
        self._free_s = 0.0  # when the next record may be sketched
        self._published_s = self._began_s - _PUBLISHED_S

    def facts(self) -> Sequence[TensorFacts]:
        """Return what the metrics show; nothing after two windows without a record. Any thread."""
        return () if self._clock_s() - self._published_s > 2 * self._window_s else self._facts

    def add(self, record: Record) -> None:
        """Sketch the tensors of a record, unless the thread has spent its share of the time.

        Does nothing while another thread is in it: that of a capture that ends.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._add(record)
        finally:
            self._lock.release()

    def _add(self, record: Record) -> None:
        start_s = self._clock_s()
        if start_s < self._free_s:
            return
        if start_s - self._began_s >= self._window_s:
            late = start_s - self._began_s >= 2 * self._window_s
            self._last = Sketches(self._predicted) if late else self._current
            self._current = Sketches(self._predicted)
            self._began_s = start_s
        self._current.add(record)
        if start_s - self._published_s >= _PUBLISHED_S:
            self._published_s = start_s
            self._publish()
        now_s = self._clock_s()
        self._free_s = now_s + (now_s - start_s) * (1 / _BUSY - 1)

    def _publish(self) -> None:
        both = Sketches()
        both.merge(self._last)
        both.merge(self._current)
        self._facts = [_facts(key, each) for key, each in sorted(both.found.items())]


def _facts(key: Key, sketch: TensorSketch) -> TensorFacts:
    numbers = sketch.numbers
    shares = sketch.classes.shares()
    often = [
        (n, shares[n]) for n, count in sketch.classes.counts.most_common(_SHOWN) if count >= _LEAST
    ]
    return TensorFacts(
        key,
        numbers.count,
        numbers.nan_share,
        numbers.mean,
        numbers.quantiles(QUANTILES),
        dict(often),
    )
