"""tune: the search that a plan asks for, on a model that is served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import invalid
from core_tune.configuration import text as config_text
from core_tune.configuration.threads import ThreadParameters
from core_tune.flags.plan import Plan
from core_tune.queueing.arrivals import Arrivals
from core_tune.queueing.limit import Traffic
from core_tune.report.outcome import Outcome
from core_tune.search.search import Budget, Search
from core_tune.server.meter import LiveMeter
from core_tune.settings import CPU, GPU, Settings, Space, steps

_DELAYS = (0.0, 0.02, 0.1, 0.25)  # of the objective
PARTS = (1, 4)
_INSTANCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_KEPT_S = 15.0  # of the time, for the end of the search


def tune(
    plan: Plan,
    meter: LiveMeter,
    arrivals: Arrivals,
    watch: Callable[[str], None],
    machine: Hardware,
) -> Outcome:
    """Search, and return what was found. KeyboardInterrupt ends the search: it reports what it knows by then.

    Raises CoreError if the model cannot be tuned, or requests fail.
    """
    space = space_of(plan, meter, machine)
    traffic = Traffic(space.rows, max(meter.most_rows, 1), arrivals)
    budget = Budget(plan.measurements, max(plan.seconds - _KEPT_S, 1.0))
    search = Search(
        space,
        traffic,
        meter,
        budget,
        watch,
        least_rate=meter.least_rate,
        processors=machine.processors,
    )
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
        traffic=traffic,
        found=found,
        path=path,
        texts=_texts(path, space.current, found.best, meter.threads),
        interrupted=interrupted,
        seconds=meter.elapsed_s(),
    )


@dataclass(frozen=True)
class Hardware:
    """Of the machine that serves: processors that it may use, and whether it has GPUs."""

    processors: int
    gpus: bool = False


def space_of(plan: Plan, meter: LiveMeter, machine: Hardware) -> Space:
    """Return the settings to choose from. Raises CoreError for values that the model cannot have."""
    current = meter.now
    batches, delays = _batching(plan, meter)
    both = [CPU, GPU] if machine.gpus and current.kind in (CPU, GPU) else []
    kinds = plan.kinds or [current.kind, *both]
    return Space(
        current,
        instances=plan.instances
        or [each for each in _INSTANCES if each <= max(2 * machine.processors, current.instances)],
        batches=batches,
        delays_us=delays,
        parts=plan.parts or PARTS,
        threads=_threads(plan, meter, machine),
        kinds=list(dict.fromkeys(kinds)),
        workers=_workers(plan, meter),
        most_threads=2 * machine.processors,
        rows=meter.rows,
    )


def _batching(plan: Plan, meter: LiveMeter) -> tuple[Sequence[int], Sequence[int]]:
    """Return the largest batches and the delays."""
    current, most_rows = meter.now, meter.most_rows
    if "sequence_batching" in meter.original or not most_rows:
        for name, given in (("--batch-sizes", plan.batches), ("--delays", plan.delays_us)):
            if given:
                why = "has sequences" if most_rows else "takes no batches (max_batch_size is 0)"
                raise invalid(f"model '{plan.side.model}' {why}; leave out {name}")
        return [current.batch], [current.delay_us]
    batches = plan.batches or [1, *(each for each in steps(meter.rows, most_rows) if each > 1)]
    if batches[-1] > most_rows:
        raise invalid(
            f"--batch-sizes has {batches[-1]}, but the max_batch_size of model "
            f"'{plan.side.model}' is {most_rows}"
        )
    return batches, plan.delays_us or delays_of(plan.objective.seconds)


def delays_of(objective_s: float) -> list[int]:
    """Return the delays in microseconds that are tried by default."""
    return sorted({round(each * objective_s * 1e6) for each in _DELAYS})


def _threads(plan: Plan, meter: LiveMeter, machine: Hardware) -> Sequence[int]:
    if meter.threads is None:
        if plan.threads:
            raise invalid(
                f"backend '{meter.original.get('backend', '')}' of model '{plan.side.model}' declares no "
                "parameter for threads; leave out --framework-threads"
            )
        return [0]
    now = meter.now.threads
    if meter.threads.once and plan.folder is None:
        if plan.threads:
            raise invalid(
                f"backend '{meter.original['backend']}' takes {meter.threads.threads} once in a process, so "
                "another number needs a new one: name the folder of the model, core tune models/MODEL"
            )
        return [now]
    if plan.threads:
        return sorted({now, *plan.threads})
    # The number that a backend chooses is that of the processors, or near it.
    most = machine.processors if now else machine.processors - 1
    return sorted({now, *(each for each in steps(1, machine.processors) if each <= most)})


def _workers(plan: Plan, meter: LiveMeter) -> Sequence[int]:
    workers = plan.workers or [meter.now.workers]
    if workers[-1] > 1 and "sequence_batching" in meter.original:
        raise invalid(
            f"model '{plan.side.model}' has sequences, which several workers do not share; "
            "leave out --workers"
        )
    return workers


def _texts(
    path: Path | None, now: Settings, best: Settings | None, threads: ThreadParameters | None
) -> tuple[str, str]:
    """Return the text of config.pbtxt before and after."""
    if best is None:
        return "", ""
    try:
        before = config_text.read(path) if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(f"cannot read '{path}': {error}") from None
    return before, config_text.with_settings(before, now, best, threads)
