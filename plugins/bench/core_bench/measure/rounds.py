"""Measurement: runs the rounds of all cases in turn, and keeps what they measured.

Rounds of different cases alternate, and every second turn is in reverse order. So what slows the machine down
for a while slows all cases down, and no case always follows the same other one.
"""

from __future__ import annotations

from collections.abc import Sequence

from core_bench.load.on_thread import run_on_thread
from core_bench.load.plan import Generator
from core_bench.measure.cpu import used
from core_bench.measure.result import CaseResult, RoundResult
from core_bench.measure.split import Totals, split, totals
from core_bench.measure.target import Target, Watch
from core_bench.native.engine import Tally
from core_bench.plan import Level, Objective, Plan


class Ended(Exception):
    """The measurement ends early: Ctrl-C, or the server was lost."""


class Measurement:
    """results: of all levels so far, the sides of a level beside each other.

    lost          text about a server that was lost; "" for none
    interrupted   whether Ctrl-C has ended the measurement
    """

    def __init__(self, plan: Plan, targets: Sequence[Target], watch: Watch):
        self._plan, self._targets, self._watch = plan, targets, watch
        self.results: list[CaseResult] = []
        self.lost = ""
        self.interrupted = False

    def warm_up(self, level: Level) -> None:
        """Send load that is not measured. Raises Ended."""
        if not self._plan.timing.warmup_s:
            return
        for target in self._targets:
            generator = target.generator(level)
            name = f"{target.side.name}: " if len(self._targets) > 1 else ""
            self._run(generator, f"{name}warm-up", 0.0, self._plan.timing.warmup_s, 0, target)

    def measure(self, levels: Sequence[Level], rounds: int = 0) -> list[CaseResult]:
        """Run all rounds of some levels; return their results, which `results` has too. Raises Ended.

        rounds   of each; 0 for those of the plan
        """
        cases = [CaseResult(target.side, level) for level in levels for target in self._targets]
        targets = [target for _ in levels for target in self._targets]
        self.results += cases
        timing = self._plan.timing
        least, most = (rounds, rounds) if rounds else (timing.rounds, timing.most_rounds)
        for number in range(most):
            wanted = [
                (case, target)
                for case, target in zip(cases, targets, strict=True)
                if number < least or not self._is_narrow(case)
            ]
            for case, target in reversed(wanted) if number % 2 else wanted:
                self._one(case, target, number, f"round {number + 1} of {max(least, number + 1)}")
        return cases

    def _is_narrow(self, case: CaseResult) -> bool:
        """Return whether rate and latency are known as exactly as --stability-percentage asks."""
        quantile = self._plan.quantile
        found = (case.rate(), case.latency(quantile))
        # A single round has no bounds: its coverage is 0.
        return all(
            bool(each and each.coverage and each.half_width <= self._plan.timing.stability)
            for each in found
        )

    def _one(self, case: CaseResult, target: Target, number: int, name: str) -> None:
        timing = self._plan.timing
        text = f"{case.level.label}, {name}"
        if len(self._targets) > 1:
            text = f"{case.side.name}: {text}"
        measure_s, at_least = timing.round_s, max(int(case.level.value), 1)
        if case.level.open:
            at_least = 0
        if timing.requests:
            measure_s, at_least = 0.0, timing.requests
            if case.level.open:
                measure_s = timing.requests / case.level.value
        generator = target.generator(case.level, number)
        cpu, statistics = target.cpu.seconds(), self._statistics(target)
        ended: Ended | None = None
        try:
            tally = self._run(generator, text, timing.settle_s, measure_s, at_least, target)
        except _Partial as partial:
            tally, ended = partial.tally, Ended()
        server_s = used(cpu, target.cpu.seconds())
        # A server that hangs is why people press Ctrl-C: ask it nothing then.
        parts = split(statistics, None if ended else self._statistics(target))
        # A round that was cut short counts only if there is no other.
        if (
            not ended
            or (not case.rounds and tally.counts["completed"])
            or (self.lost and tally.errors)
        ):
            case.rounds.append(RoundResult(tally, server_s, parts))
        if ended:
            raise ended

    def _statistics(self, target: Target) -> Totals | None:
        if target.side.kind == "openai":
            return None
        return totals(target.control.statistics(target.side.model, target.side.version))

    def _run(
        self,
        generator: Generator,
        text: str,
        settle_s: float,
        measure_s: float,
        at_least: int,
        target: Target,
    ) -> Tally:
        """Run a round on a thread; return its tally. Raises Ended after Ctrl-C or without a server."""
        tally, alive, interrupted = run_on_thread(
            generator, settle_s, measure_s, at_least, lambda: self._watch(text, generator)
        )
        self.interrupted = self.interrupted or interrupted
        if not alive:
            self.lost = f"the server {target.address.shown} does not accept connections any more"
        if self.interrupted or not alive:
            raise _Partial(tally)
        return tally


class _Partial(Ended):
    """A round that was cut short."""

    def __init__(self, tally: Tally):
        super().__init__()
        self.tally = tally


def meets(case: CaseResult, objective: Objective | None) -> bool:
    """Return whether a case has no errors, keeps up with its rate, and meets the objective, if any."""
    if not case.rounds or case.errors() or not case.kept_up():
        return False
    found = case.latency(objective.quantile) if objective else None
    return objective is None or (found is not None and found.median <= objective.seconds)
