"""The exhaustive search as the truth, then core tune, then both results in turn.

    python plugins/tune/benchmarks/exhaustive.py [--model cnn|forest|python]… [--seconds 0.4] [--turns 24]

For each model of models.py, on a server of its own, about a quarter of an hour in all:

1. The capacity of all combinations is measured in closed loops. Then the highest rate within the objective is
   found for one after the other, those of the highest capacity first: bisection, --probes measurements each.
   It ends at combinations whose capacity is below the best rate. The best --finalists of them are measured
   again in turn: that of the highest average is the truth.
2. `core tune` searches the same combinations, with its own bounds: 40 measurements, 10 minutes.
3. The truth, the choice of core tune and the settings of the beginning are measured in turn, --turns times.
   The ratio of their rates is what counts: all are of the same minutes, and none of them chose the truth.

It prints a table, and exits with 1 if core tune reaches less than 95 % of the exhaustive search, needs more
than 40 measurements or 10 minutes. A failed request is an error of the search.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

from core_tune.command import run
from core_tune.flags.plan import plan_of
from core_tune.server.meter import LiveMeter
from core_tune.settings import Settings
from core_tune.tuning import Hardware, space_of
from models import CASES
from turns import in_turn, keeps, opened, say

from core.system.platform import cores

WANTED = 0.95
MARGIN = 1.1  # by which a closed loop may measure too low a capacity
CLIENTS = 64  # of a closed loop at most


@dataclasses.dataclass(frozen=True)
class Truth:
    """What the exhaustive search found for one model, and how long it took.

    limits   requests per second by combinations; 0 for those that were not searched
    """

    best: Settings
    limits: dict[Settings, float]
    measurements: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class Result:
    """What was found for one model.

    rates   requests per second of the truth, of core tune's choice and of the beginning, in turn
    ratio   rate of core tune's choice by that of the truth; 0 without a choice
    error   standard error of the ratio
    """

    model: str
    truth: Truth
    chosen: Settings | None
    measurements: int
    tune_s: float
    rates: dict[str, float]
    ratio: float
    error: float

    @property
    def good(self) -> bool:
        return self.ratio >= WANTED and self.measurements <= 40 and self.tune_s <= 600


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", action="append", choices=sorted(CASES))
    parser.add_argument("--seconds", type=float, default=0.4, help="of a round")
    parser.add_argument("--probes", type=int, default=6, help="measurements of each combination")
    parser.add_argument("--finalists", type=int, default=3, help="combinations measured in turn")
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for name in options.model or list(CASES):
        with tempfile.TemporaryDirectory() as folder:
            found.append(measured(name, Path(folder), options))
        print(table(found), flush=True)
        if options.json:
            options.json.write_text(json.dumps([as_json(each) for each in found], indent=1))
    return 0 if all(each.good for each in found) else 1


def measured(name: str, folder: Path, options: argparse.Namespace) -> Result:
    case = CASES[name]
    case.write(folder / name)
    plan = plan_of([str(folder / name), *case.flags])
    objective_s = plan.objective.seconds
    with opened(plan, options.seconds) as meter:
        space = space_of(plan, meter, Hardware(len(cores())))
        truth = exhaustive(list(space), meter, objective_s, options)
    say(f"{name}: the exhaustive search has {truth.best.shown}")
    outcome = run(plan)
    chosen = outcome.best
    say(f"{name}: core tune has {chosen.shown if chosen else 'nothing'}")
    rates, ratio, error = {}, 0.0, 0.0
    if chosen is not None:
        with opened(plan, options.seconds) as meter:
            wanted = {"truth": truth.best, "tune": chosen, "now": meter.now}
            begin = truth.limits[truth.best]
            turns = in_turn(list(wanted.values()), begin, meter, objective_s, options.turns)
        rates = {each: turns.rate(settings) for each, settings in wanted.items()}
        ratio, error = turns.ratio(chosen, truth.best)
    return Result(
        model=name,
        truth=truth,
        chosen=chosen,
        measurements=len(outcome.found.observations),
        tune_s=outcome.seconds,
        rates=rates,
        ratio=ratio,
        error=error,
    )


def exhaustive(
    space: Sequence[Settings], meter: LiveMeter, objective_s: float, options: argparse.Namespace
) -> Truth:
    """Search all combinations."""
    begin, most = meter.elapsed_s(), {}
    for number, each in enumerate(space):
        clients = 4 * each.instances * max(1, each.batch // meter.rows)
        most[each] = MARGIN * meter.in_flight(each, min(clients, CLIENTS)).answered
        say(f"{number + 1} of {len(space)}: {each.shown}: at most {most[each]:.1f}/s")
    limits = dict.fromkeys(space, 0.0)
    count = len(limits)
    for each in sorted(space, key=lambda one: -most[one]):
        if most[each] < max(limits.values()):
            break
        limits[each] = highest(each, most[each], meter, objective_s, options.probes)
        count += options.probes
        say(f"{each.shown}: {limits[each]:.1f}/s")
    finalists = sorted(space, key=lambda each: -limits[each])[: options.finalists]
    turns = in_turn(finalists, limits[finalists[0]], meter, objective_s, max(options.turns // 2, 3))
    count += len(finalists) * max(options.turns // 2, 3)
    return Truth(max(finalists, key=turns.rate), limits, count, meter.elapsed_s() - begin)


def highest(
    settings: Settings, high: float, meter: LiveMeter, objective_s: float, probes: int
) -> float:
    """Return the highest rate within the objective that was found below `high`; 0 for none."""
    low, best = high / 16, 0.0
    for _ in range(probes):
        rate = math.sqrt(low * high) if best else high * 0.75
        if keeps(meter.at_rate(settings, rate), objective_s):
            low = best = rate
        else:
            high = rate
    return best


def table(found: Sequence[Result]) -> str:
    lines = [
        "| model | search | result | measurements | time | rate, in turn | of the exhaustive search |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for each in found:
        truth = each.truth
        lines += [
            f"| {each.model} | exhaustive, {len(truth.limits)} combinations | {truth.best.shown} | "
            f"{truth.measurements} | {truth.seconds / 60:.1f} min | {rate(each, 'truth')} | |",
            f"| | core tune | {each.chosen.shown if each.chosen else '-'} | {each.measurements} | "
            f"{each.tune_s / 60:.1f} min | {rate(each, 'tune')} | {each.ratio:.0%} ± {each.error:.1%} |",
            f"| | none | as at the beginning | | | {rate(each, 'now')} | |",
        ]
    return "\n".join(lines)


def rate(found: Result, name: str) -> str:
    return f"{found.rates[name]:,.0f}/s" if name in found.rates else "-"


def as_json(found: Result) -> dict[str, object]:
    truth = found.truth
    return {
        "model": found.model,
        "good": found.good,
        "ratio": found.ratio,
        "error": found.error,
        "rates": found.rates,
        "chosen": found.chosen and dataclasses.asdict(found.chosen),
        "measurements": found.measurements,
        "seconds": found.tune_s,
        "truth": {
            "best": dataclasses.asdict(truth.best),
            "measurements": truth.measurements,
            "seconds": truth.seconds,
            "limits": {each.shown: limit for each, limit in truth.limits.items()},
        },
    }


if __name__ == "__main__":
    raise SystemExit(main())
