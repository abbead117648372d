"""Several settings of one model, measured in turn, so that all of them meet the same machine."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence

from core_tune.flags.plan import Plan
from core_tune.observation import Observation
from core_tune.queueing.arrivals import Arrivals
from core_tune.server.meter import LiveMeter
from core_tune.server.own import OwnServer
from core_tune.settings import Settings

STEP = 1.04  # of a rate, after a measurement within the objective and after another one
FAST = STEP**3  # the same in the turns in which rates approach their limits
APPROACH = 1 / 3  # of the turns
BLOCK = 4  # turns whose average is one value for the error: rates of turns that follow are alike


@dataclasses.dataclass(frozen=True)
class Turns:
    """Logarithms of the rates by settings, one for each turn after the approach."""

    logs: Mapping[Settings, Sequence[float]]

    def rate(self, settings: Settings) -> float:
        """Return the average of the rates, in requests per second."""
        return math.exp(statistics.fmean(self.logs[settings]))

    def ratio(self, one: Settings, other: Settings) -> tuple[float, float]:
        """Return the rate of one by that of the other, and the standard error of this.

        Both are of the same turns: a machine that gets slower makes no difference.
        """
        if one == other:
            return 1.0, 0.0
        apart = [a - b for a, b in zip(self.logs[one], self.logs[other], strict=True)]
        whole = range(0, len(apart) - BLOCK + 1, BLOCK)
        blocks = [statistics.fmean(apart[at : at + BLOCK]) for at in whole]
        ratio = math.exp(statistics.fmean(apart))
        if len(blocks) < 2:
            return ratio, math.inf
        return ratio, ratio * statistics.stdev(blocks) / math.sqrt(len(blocks))


def in_turn(
    wanted: Sequence[Settings], begin: float, meter: LiveMeter, objective_s: float, turns: int
) -> Turns:
    """Measure settings in turn.

    begin   requests per second of the first turn, the same for all settings
    Each has a rate of its own, which rises after a measurement within the objective and falls after another.
    """
    different = list(dict.fromkeys(wanted))
    rates = dict.fromkeys(different, max(begin, meter.least_rate))
    logs: dict[Settings, list[float]] = {each: [] for each in different}
    for turn in range(turns):
        approach = turn < int(APPROACH * turns)
        for each in different if turn % 2 else different[::-1]:
            kept = keeps(meter.at_rate(each, rates[each]), objective_s)
            step = FAST if approach else STEP
            rates[each] = max(rates[each] * (step if kept else 1 / step), meter.least_rate)
            if not approach:
                logs[each].append(math.log(rates[each]))
        say(
            f"turn {turn + 1}: {', '.join(f'{each.shown} {rates[each]:.1f}/s' for each in different)}"
        )
    return Turns(logs)


def keeps(seen: Observation, objective_s: float) -> bool:
    """Return whether a measurement is within the objective."""
    return not seen.overloaded and seen.latency_s <= objective_s


@contextlib.contextmanager
def opened(plan: Plan, round_s: float) -> Iterator[LiveMeter]:
    """Start a server, and measure it in rounds of that time."""
    assert plan.folder is not None
    side, folder = plan.side, plan.folder
    with OwnServer(folder.parent, folder.name, side.protocol, plan.serve_flags) as server:
        side = dataclasses.replace(side, url=server.url)
        arrivals = Arrivals(plan.objective.quantile, plan.objective.seconds)
        with LiveMeter(side, arrivals, round_s=round_s, server=server) as meter:
            yield meter


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)
