"""The exhaustive search as the truth, then core tune, then both results in turn.

    python plugins/tune/benchmarks/exhaustive.py [--model cnn|forest|python]… [--seconds 0.4] [--turns 12]

For each model of models.py, on a server of its own:

1. All combinations are measured, one after the other: bisection of the rate, --probes measurements each.
2. `core tune` searches the same combinations, with its own bounds: 40 measurements, 10 minutes.
3. The best of both, and the settings of the beginning, are measured in turn, --turns times. Each has a rate
   of its own, which rises by 4 % after a measurement within the objective and falls by 4 % after another one.
   The ratio of the average rates is what counts: it compares what was measured at the same time.

It prints a table, and exits with 1 if core tune reaches less than 95 % of the exhaustive search, needs more
than 40 measurements or 10 minutes. A failed request is an error of the search.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from core_tune.command import run
from core_tune.flags.plan import Plan, plan_of
from core_tune.observation import Observation
from core_tune.queueing.arrivals import Arrivals
from core_tune.server.meter import LiveMeter
from core_tune.server.own import OwnServer
from core_tune.settings import Settings
from core_tune.tuning import Hardware, space_of
from models import CASES

from core.system.platform import cores

STEP = 1.04
WANTED = 0.95


@dataclasses.dataclass(frozen=True)
class Result:
    """What was found for one model; `ratio`: rate of core tune's choice by that of the exhaustive search."""

    model: str
    truth: Settings
    truth_measurements: int
    truth_s: float
    combinations: int
    chosen: Settings | None
    measurements: int
    tune_s: float
    rates: dict[str, float]
    ratio: float

    @property
    def good(self) -> bool:
        return self.ratio >= WANTED and self.measurements <= 40 and self.tune_s <= 600


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", action="append", choices=sorted(CASES))
    parser.add_argument("--seconds", type=float, default=0.4, help="of a round, of the truth")
    parser.add_argument("--probes", type=int, default=6, help="measurements of each combination")
    parser.add_argument("--turns", type=int, default=18)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for name in options.model or list(CASES):
        with tempfile.TemporaryDirectory() as folder:
            found.append(measured(name, Path(folder), options))
        print(table(found), flush=True)
        if options.json:
            made = [{**dataclasses.asdict(each), "good": each.good} for each in found]
            options.json.write_text(json.dumps(made, indent=1))
    return 0 if all(each.good for each in found) else 1


def measured(name: str, folder: Path, options: argparse.Namespace) -> Result:
    case = CASES[name]
    case.write(folder / name)
    plan = plan_of([str(folder / name), *case.flags])
    begin = time.monotonic()
    with opened(plan, options.seconds) as meter:
        space = space_of(plan, meter, Hardware(len(cores())))
        limits, count = exhaustive(space, meter, plan.objective.seconds, options.probes)
    truth_s = time.monotonic() - begin
    truth = max(limits, key=lambda each: limits[each])
    say(f"{name}: the exhaustive search has {truth.shown}, {limits[truth]:.1f}/s")
    outcome = run(plan)
    say(f"{name}: core tune has {outcome.best.shown if outcome.best else 'nothing'}")
    rates = {}
    if outcome.best is not None:
        with opened(plan, options.seconds) as meter:
            wanted = {"truth": truth, "tune": outcome.best, "now": meter.now}
            rates = in_turn(wanted, limits, meter, plan.objective.seconds, options.turns)
    return Result(
        model=name,
        truth=truth,
        truth_measurements=count,
        truth_s=truth_s,
        combinations=len(limits),
        chosen=outcome.best,
        measurements=len(outcome.found.observations),
        tune_s=outcome.seconds,
        rates=rates,
        ratio=rates["tune"] / rates["truth"] if rates else 0.0,
    )


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


def exhaustive(
    space: Sequence[Settings], meter: LiveMeter, objective_s: float, probes: int
) -> tuple[dict[Settings, float], int]:
    """Return the highest rate of each combination, and the number of measurements."""
    limits, count = {}, 0
    for number, settings in enumerate(space):
        clients = 4 * settings.instances * max(1, settings.batch // meter.rows)
        high = meter.in_flight(settings, min(clients, 64)).answered * 1.1
        low, best = high / 16, 0.0
        for _ in range(probes):
            rate = math.sqrt(low * high) if best else high * 0.75
            count += 1
            if keeps(meter.at_rate(settings, rate), objective_s):
                low = best = rate
            else:
                high = rate
        limits[settings] = best
        say(f"{number + 1} of {len(space)}: {settings.shown}: {best:.1f}/s")
    return limits, count


def keeps(seen: Observation, objective_s: float) -> bool:
    return not seen.overloaded and seen.latency_s <= objective_s


def in_turn(
    wanted: dict[str, Settings],
    limits: dict[Settings, float],
    meter: LiveMeter,
    objective_s: float,
    turns: int,
) -> dict[str, float]:
    """Return the average of the rates after a third of the turns, in which they approach the limits."""
    # The same for all: what else happened on the machine when their limits were measured does not count.
    begin = statistics.median(max(limits.get(each, 0.0), 1.0) for each in wanted.values())
    rates = dict.fromkeys(wanted, begin)
    seen: dict[str, list[float]] = {name: [] for name in wanted}
    for turn in range(turns):
        names = list(wanted) if turn % 2 else list(wanted)[::-1]
        for name in names:
            kept = keeps(meter.at_rate(wanted[name], rates[name]), objective_s)
            step = STEP if turn >= turns // 3 else STEP**3
            rates[name] *= step if kept else 1 / step
            if turn >= turns // 3:
                seen[name].append(rates[name])
        say(f"turn {turn + 1}: {', '.join(f'{n} {rates[n]:.1f}/s' for n in wanted)}")
    return {name: statistics.fmean(each) for name, each in seen.items()}


def table(found: Sequence[Result]) -> str:
    lines = [
        "| model | search | result | measurements | time | rate, in turn | of the exhaustive search |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for each in found:
        lines += [
            f"| {each.model} | exhaustive, {each.combinations} combinations | {each.truth.shown} | "
            f"{each.truth_measurements} | {each.truth_s / 60:.1f} min | {rate(each, 'truth')} | |",
            f"| | core tune | {each.chosen.shown if each.chosen else '-'} | {each.measurements} | "
            f"{each.tune_s / 60:.1f} min | {rate(each, 'tune')} | {each.ratio:.0%} |",
            f"| | none | as at the beginning | | | {rate(each, 'now')} | |",
        ]
    return "\n".join(lines)


def rate(found: Result, name: str) -> str:
    return f"{found.rates[name]:,.0f}/s" if name in found.rates else "-"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
