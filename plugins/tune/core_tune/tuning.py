"""tune: the search that a plan asks for, on a model that is served."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from core.errors import invalid
from core_tune.configuration import text as config_text
from core_tune.flags.plan import Plan
from core_tune.queueing.limit import Traffic
from core_tune.queueing.simulation import arrivals
from core_tune.report.outcome import Outcome
from core_tune.search.search import Budget, Search
from core_tune.server.meter import LiveMeter
from core_tune.settings import Settings, Space, steps

_SIMULATED = 1000  # requests of a simulation
_DELAYS = (0.0, 0.02, 0.1, 0.25)  # of the objective
_INSTANCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_KEPT_S = 15.0  # of the time, for the end of the search


def tune(plan: Plan, meter: LiveMeter, watch: Callable[[str], None], processors: int) -> Outcome:
    """Search, and return what was found. Ctrl-C ends the search, which reports what it knows by then.

    Raises CoreError if the model cannot be tuned, or requests fail.
    """
    space = space_of(plan, meter, processors)
    traffic = Traffic(
        rows=plan.side.batch,
        most_rows=max(meter.most_rows, 1),
        due=arrivals(_SIMULATED),
        quantile=plan.objective.quantile,
        seconds=plan.objective.seconds,
    )
    budget = Budget(plan.measurements, max(plan.seconds - _KEPT_S, 1.0))
    search = Search(space, traffic, meter, budget, watch, least_rate=meter.least_rate)
    interrupted = False
    try:
        search.run()
    except KeyboardInterrupt:
        if not search.estimates:
            raise
        interrupted = True
    found = search.found()
    path = plan.write or (plan.folder / "config.pbtxt" if plan.folder else None)
    return Outcome(
        model=plan.side.model,
        objective=plan.objective,
        space=space,
        found=found,
        path=path,
        texts=_texts(path, meter.now if found.best is None else space.current, found.best),
        interrupted=interrupted,
        seconds=meter.elapsed_s(),
    )


def space_of(plan: Plan, meter: LiveMeter, processors: int) -> Space:
    """Return the settings to choose from. Raises CoreError for values that the model cannot have."""
    current, most_rows, rows = meter.now, meter.most_rows, plan.side.batch
    instances = plan.instances or [
        each for each in _INSTANCES if each <= max(2 * processors, current.instances)
    ]
    if "sequence_batching" in meter.original or not most_rows:
        for name, given in (("--batch-sizes", plan.batches), ("--delays", plan.delays_us)):
            if given:
                why = "has sequences" if most_rows else "takes no batches (max_batch_size is 0)"
                raise invalid(f"model '{plan.side.model}' {why}; leave out {name}")
        return Space(current, instances, [current.batch], [current.delay_us])
    batches = plan.batches or [1, *(each for each in steps(rows, most_rows) if each > 1)]
    if batches[-1] > most_rows:
        raise invalid(
            f"--batch-sizes has {batches[-1]}, but the max_batch_size of model "
            f"'{plan.side.model}' is {most_rows}"
        )
    delays = plan.delays_us
    if delays is None:
        delays = sorted({round(each * plan.objective.seconds * 1e6) for each in _DELAYS})
    return Space(current, instances, batches, delays)


def _texts(path: Path | None, now: Settings, best: Settings | None) -> tuple[str, str]:
    """Return the text of config.pbtxt before and after."""
    if best is None:
        return "", ""
    try:
        before = config_text.read(path) if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(f"cannot read '{path}': {error}") from None
    return before, config_text.with_settings(before, now, best)
