"""Outcome: all that a run has found, for the reports. Notes: what a reader of the numbers has to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core_bench.measure.result import CaseResult, RoundResult
from core_bench.measure.spread import Interval, ratio
from core_bench.plan import Objective, Side

_BUSY = 0.85  # of a processor: the load generator may be the limit
_LATE_S = 0.001


@dataclass(frozen=True)
class Outcome:
    """best: of a search, with `searched` what for; None and "" without one."""

    results: Sequence[CaseResult]
    sides: Sequence[Side]
    objective: Objective | None = None
    searched: str = ""
    best: CaseResult | None = None
    lost: str = ""
    interrupted: bool = False
    cpu_reason: str = ""
    threads: int = 1

    def of(self, side: Side) -> list[CaseResult]:
        """Return the results of one side that have a round."""
        return [each for each in self.results if each.side is side and each.rounds]

    def label(self, case: CaseResult) -> str:
        """Return the load of a case, with its side if there are two."""
        label = case.level.label
        return f"{case.side.name}, {label}" if len(self.sides) > 1 else label

    @property
    def failed(self) -> bool:
        return bool(self.lost) or any(each.errors() for each in self.results)


@dataclass(frozen=True)
class Comparison:
    """The second side divided by the first one, at one level. Above 1: the second has more."""

    level: str
    rate: Interval | None
    p50: Interval | None
    p99: Interval | None
    cpu: Interval | None


def comparisons(outcome: Outcome) -> list[Comparison]:
    """Return a comparison for each level that both sides have; [] for one side."""
    if len(outcome.sides) < 2:
        return []
    first, second = (outcome.of(side) for side in outcome.sides)
    found = []
    for one, other in zip(first, second, strict=False):
        found.append(
            Comparison(
                one.level.label,
                _ratio(other, one, RoundResult.rate),
                _ratio(other, one, lambda each: each.latency_s(0.5)),
                _ratio(other, one, lambda each: each.latency_s(0.99)),
                _ratio(other, one, RoundResult.cpu_us),
            )
        )
    return found


def _ratio(
    above: CaseResult, below: CaseResult, what: Callable[[RoundResult], float | None]
) -> Interval | None:
    """Return the interval over the pairs of rounds that both have the value."""
    pairs = [
        (a, b)
        for one, other in zip(above.rounds, below.rounds, strict=False)
        if (a := what(one)) is not None and (b := what(other)) is not None
    ]
    return ratio([a for a, _ in pairs], [b for _, b in pairs])


def notes(outcome: Outcome) -> list[str]:
    """Return warnings, one line each, such as a rate that was not kept or a busy load generator."""
    found = []
    if outcome.lost:
        found.append(f"{outcome.lost}; these are the answers until then")
    if outcome.interrupted:
        found.append("ended by Ctrl-C; these are the answers until then")
    for each in outcome.results:
        if each.rounds:
            found += _notes_of(each, outcome)
    if outcome.cpu_reason:
        found.append(f"no processor time of the server: {outcome.cpu_reason}")
    return found


def _notes_of(case: CaseResult, outcome: Outcome) -> list[str]:
    name, found = outcome.label(case), []
    if not case.kept_up():
        late = case.count("unsent") + case.count("unanswered")
        found.append(
            f"{name}: the server did not keep up; {late:,} requests had no answer at the end of their round, "
            "and latencies are lower bounds"
        )
    waited, total = case.count("waited"), case.pooled("latency").count
    if case.level.open and total and waited > total / 100 and case.kept_up():
        found.append(
            f"{name}: {waited / total:.0%} of the requests waited for a free connection; "
            "their latency includes it; --connections allows more"
        )
    share = max(each.generator_share() for each in case.rounds)
    if not case.level.open and share > _BUSY * outcome.threads:
        found.append(
            f"{name}: the load generator used {share:.0%} of a processor and may be the limit; "
            f"use --threads {outcome.threads + 1}"
        )
    lag = case.pooled("lag")
    if case.level.open and lag.count and lag.quantile(0.99) > _LATE_S * 1e9:
        found.append(
            f"{name}: the load generator sent 1 % of its requests more than "
            f"{lag.quantile(0.99) / 1e6:.1f} ms late; its latencies include that"
        )
    return found
