"""RoundResult: what one round has measured. CaseResult: all rounds of one side at one level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core_bench.measure.errors import merged
from core_bench.measure.split import Split
from core_bench.measure.spread import Interval, interval
from core_bench.native.engine import Histogram, Tally
from core_bench.plan import Level, Side

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
_TAIL = 10  # values above a quantile, below which the quantile of a round says little


@dataclass(frozen=True)
class RoundResult:
    """server_cpu_s is None if the processes of the server are not known."""

    tally: Tally
    server_cpu_s: float | None
    split: Split | None

    def rate(self) -> float:
        """Return right answers per second."""
        return self.tally.counts["completed"] / (self.tally.measured_ns / 1e9)

    def latency_s(self, quantile: float) -> float | None:
        """Return a quantile of the latency, or the average for -1; None without an answer."""
        return of(self.tally.latency, quantile)

    def cpu_us(self) -> float | None:
        """Return the processor time of the server per answer, in microseconds."""
        count = self.tally.counts["all"]
        return None if self.server_cpu_s is None or not count else self.server_cpu_s / count * 1e6

    def generator_share(self) -> float:
        """Return how much of one processor the load generator used."""
        return self.tally.counts["cpu_ns"] / max(self.tally.measured_ns, 1)


def of(histogram: Histogram, quantile: float) -> float | None:
    """Return a quantile in seconds, or the average for -1; None of an empty histogram."""
    if not histogram.count:
        return None
    return (histogram.mean if quantile < 0 else histogram.quantile(quantile)) / 1e9


@dataclass
class CaseResult:
    """One side at one level."""

    side: Side
    level: Level
    rounds: list[RoundResult] = field(default_factory=list)

    def values(self, what: Callable[[RoundResult], float | None]) -> list[float]:
        """Return a value of each round that has it."""
        found = [what(each) for each in self.rounds]
        return [each for each in found if each is not None]

    def rate(self) -> Interval | None:
        return interval(self.values(RoundResult.rate))

    def latency(self, quantile: float) -> Interval | None:
        return interval(self.values(lambda each: each.latency_s(quantile)))

    def times(self, name: str, quantile: float) -> Interval | None:
        """Return the interval of a quantile of another histogram of Tally, in seconds."""
        return interval(self.values(lambda each: of(getattr(each.tally, name), quantile)))

    def per_second(self, count: str) -> Interval | None:
        """Return the interval of a count of Tally per second, such as tokens."""
        return interval(
            self.values(lambda each: each.tally.counts[count] / (each.tally.measured_ns / 1e9))
        )

    def cpu_us(self) -> Interval | None:
        return interval(self.values(RoundResult.cpu_us))

    def part_us(self, part: str) -> Interval | None:
        """Return the interval of a part of the server's time for a request, in microseconds."""
        return interval(
            self.values(lambda each: each.split.microseconds(part) if each.split else None)
        )

    def rows_per_execution(self) -> Interval | None:
        return interval(
            self.values(lambda each: each.split.rows_per_execution if each.split else None)
        )

    def count(self, name: str) -> int:
        return sum(each.tally.counts[name] for each in self.rounds)

    def errors(self) -> dict[str, int]:
        """Return counts by text, the largest first."""
        found: dict[str, int] = {}
        for each in self.rounds:
            for text, count in each.tally.errors.items():
                found[text] = found.get(text, 0) + count
        return merged(found)

    def pooled(self, name: str) -> Histogram:
        """Return a histogram of Tally over all rounds."""
        made = Histogram()
        for each in self.rounds:
            made.merge(getattr(each.tally, name))
        return made

    def few_for(self, quantile: float) -> bool:
        """Return whether a round has too few answers to know that quantile."""
        counts = [each.tally.latency.count for each in self.rounds]
        return not counts or min(counts) * (1 - quantile) < _TAIL

    def kept_up(self) -> bool:
        """Return whether an open loop sent and got nearly all that was due."""
        late = self.count("unsent") + self.count("unanswered")
        total = self.pooled("latency").count
        return not total or late <= total / 100
