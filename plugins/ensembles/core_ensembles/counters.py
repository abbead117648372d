"""Counters of loops and conditions, and their metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from core.config import Signature
from core.telemetry.families import Family, Sample, histogram_samples
from core.telemetry.metrics.catalog import VERSION, Entry
from core.telemetry.metrics.source import MetricSource

_BOUNDS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)

_DECISIONS = Entry(
    "core_ensemble_step_decisions",
    "counter",
    "Times that a condition of an ensemble has let a step or loop run, or has skipped it",
    (*VERSION, "step", "result"),
)
_TURNS = Entry(
    "core_ensemble_loop_turns",
    "histogram",
    "Turns of a loop of an ensemble, for each time that it has run to its end",
    (*VERSION, "loop"),
)
_UNFINISHED = Entry(
    "core_ensemble_loops_at_max_turns",
    "counter",
    "Times that a loop of an ensemble has ended because of max_turns, though its condition still held",
    (*VERSION, "loop"),
)

Key = tuple[str, int, str]
"""Model, version, and key of the step or loop."""


class EnsembleMetrics(MetricSource):
    """The metrics of one server. Event loop only."""

    catalog = {
        "Loops and conditions of ensembles (plugin `core-ensembles`)": [
            _DECISIONS,
            _TURNS,
            _UNFINISHED,
        ]
    }

    def __init__(self) -> None:
        self.decisions: Counter[tuple[Key, str]] = Counter()
        self.unfinished: Counter[Key] = Counter()
        self._turns: dict[Key, tuple[list[int], list[int]]] = {}
        self._served: dict[tuple[str, int], Signature] = {}  # of the last load of each version

    def serve(self, signature: Signature) -> None:
        """Begin to count for a version that loads."""
        self._served[signature.name, signature.version] = signature

    def drop(self, signature: Signature) -> None:
        """Drop the counts of a version that is gone. If it has loaded again since, they are of that load."""
        version = (signature.name, signature.version)
        if self._served.get(version) is not signature:
            return
        del self._served[version]
        for counts in (self.unfinished, self._turns):
            for key in [key for key in counts if key[:2] == version]:
                del counts[key]
        for decision in [each for each in self.decisions if each[0][:2] == version]:
            del self.decisions[decision]

    def decided(self, key: Key, runs: bool) -> None:
        """Count a decision about a step or loop."""
        self.decisions[key, "run" if runs else "skip"] += 1

    def looped(self, key: Key, turns: int, holds: bool) -> None:
        """Count a loop that has ended; `holds` if its condition still held after the last turn."""
        counts, total = self._turns.setdefault(key, ([0] * (len(_BOUNDS) + 1), [0]))
        counts[bisect_left(_BOUNDS, turns)] += 1
        total[0] += turns
        self.unfinished[key] += holds

    def families(self) -> list[Family]:
        """Return the current values."""
        return [
            _DECISIONS.family(
                Sample({**_labels(key, "step"), "result": result}, count)
                for (key, result), count in self.decisions.items()
            ),
            _TURNS.family(
                sample
                for key, (counts, total) in self._turns.items()
                for sample in histogram_samples(_labels(key, "loop"), _BOUNDS, counts, total[0])
            ),
            _UNFINISHED.family(
                Sample(_labels(key, "loop"), count) for key, count in self.unfinished.items()
            ),
        ]


def _labels(key: Key, kind: str) -> dict[str, str]:
    model, version, name = key
    return {"model": model, "version": str(version), kind: name}
