"""plan_of: the Plan of a command line."""

from __future__ import annotations

import argparse

from core.errors import invalid
from core_bench.flags.sides import parse, sides_of
from core_bench.plan import Level, Objective, Pace, Plan, Timing

_ROUNDS = 6  # the fewest whose smallest and largest value enclose the median with 95 %
_TRIALS = 10


def plan_of(arguments: list[str]) -> Plan:
    """Return the plan. Raises CoreError for flags that contradict each other; SystemExit for unknown ones."""
    flags = parse(arguments)
    sides = sides_of(flags, arguments)
    objective = _objective(flags)
    levels, search, step = _levels(flags, objective)
    if search in ("knee", "binary") and len(sides) > 1:
        raise invalid("--find-knee and --binary-search measure one server; leave out --versus")
    _check_ids(flags, levels)
    return Plan(
        sides=sides,
        levels=levels,
        timing=_timing(flags, levels),
        search=search,
        step=step,
        objective=objective,
        quantile=_quantile(flags),
        files={name: path for name in ("csv", "json", "html") if (path := getattr(flags, name))},
        verbose_csv=flags.verbose_csv,
        verbose=flags.verbose,
    )


def _quantile(flags: argparse.Namespace) -> float:
    if flags.percentile != -1 and not 0 < flags.percentile < 100:
        raise invalid(f"--percentile {flags.percentile:g} is not between 0 and 100")
    return -1.0 if flags.percentile == -1 else flags.percentile / 100


def _objective(flags: argparse.Namespace) -> Objective | None:
    if flags.slo and flags.latency_threshold:
        raise invalid("--slo and --latency-threshold both set an objective; keep one")
    if flags.latency_threshold:
        return Objective(_quantile(flags), flags.latency_threshold)
    found: Objective | None = flags.slo
    return found


def _levels(
    flags: argparse.Namespace, objective: Objective | None
) -> tuple[list[Level], str, float]:
    """Return levels, the kind of search and its step."""
    given = [
        name
        for name, value in (
            ("--concurrency-range", flags.concurrency_range),
            ("-t", flags.concurrency),
            ("--request-rate-range", flags.request_rate_range),
            ("--request-intervals", flags.request_intervals),
        )
        if value
    ]
    if len(given) > 1:
        raise invalid(f"{' and '.join(given)} both set the load; keep one")
    if flags.request_intervals:
        return _replay(flags)
    pace = Pace.CLOSED
    start, end, step = flags.concurrency_range or (
        flags.concurrency or 1,
        flags.concurrency or 1,
        1.0,
    )
    if flags.request_rate_range:
        start, end, step = flags.request_rate_range
        pace = Pace.POISSON if flags.request_distribution == "poisson" else Pace.CONSTANT
    elif any(each != int(each) for each in (start, end, step)):
        raise invalid("--concurrency-range needs whole numbers")
    first = Level(pace, start)
    if flags.find_knee:
        return [first], "knee", step
    if flags.binary_search:
        if end <= start or objective is None:
            raise invalid(
                "--binary-search needs a range START:END and --latency-threshold or --slo"
            )
        return [first, Level(pace, end)], "binary", step
    if not end:
        if objective is None:
            raise invalid("a range without an end needs --latency-threshold or --slo")
        return [first], "until", step
    count = int((end - start) / step + 1e-9) + 1
    levels = [Level(pace, start + number * step) for number in range(count)]
    return levels, "until" if objective and count > 1 else "", step


def _replay(flags: argparse.Namespace) -> tuple[list[Level], str, float]:
    if flags.find_knee or flags.binary_search:
        raise invalid("--request-intervals is one load; leave out --find-knee and --binary-search")
    if flags.threads > 1:
        raise invalid("--request-intervals needs one thread; leave out --threads")
    intervals = flags.request_intervals
    return [Level(Pace.INTERVALS, len(intervals) / (sum(intervals) / 1e9), intervals)], "", 1.0


def _timing(flags: argparse.Namespace, levels: list[Level]) -> Timing:
    """Return the times. A list of intervals is replayed once in each round, unless a time is given."""
    round_s = flags.measurement_interval or 1.0
    settle_s = min(0.2, round_s / 10)
    if levels[0].intervals_ns and not flags.measurement_interval:
        round_s, settle_s = sum(levels[0].intervals_ns) / 1e9, 0.0
    requests = flags.request_count
    if requests:
        settle_s = 0.0
    rounds = flags.rounds or (1 if requests else _ROUNDS)
    if flags.measurement_mode == "count_windows" and not requests:
        requests = flags.measurement_request_count
    most = rounds
    if flags.stability_percentage is not None:
        most = max(flags.max_trials or _TRIALS, rounds)
    elif flags.max_trials and not flags.rounds:
        rounds = most = min(rounds, flags.max_trials)
    return Timing(
        round_s=round_s,
        rounds=rounds,
        most_rounds=most,
        stability=(flags.stability_percentage or 0.0) / 100,
        requests=requests,
        settle_s=settle_s,
        warmup_s=flags.warmup,
        timeout_s=flags.timeout,
        threads=flags.threads,
        connections=flags.connections,
    )


def _check_ids(flags: argparse.Namespace, levels: list[Level]) -> None:
    first, end = flags.sequence_id_range
    most = max(int(each.value) for each in levels if not each.open) if not levels[0].open else 0
    most = most or flags.num_of_sequences
    threads = min(flags.threads, most)
    if end and (end - first) // threads < -(-most // threads):
        each = f", in {threads} threads" if threads > 1 else ""
        raise invalid(
            f"--sequence-id-range {first}:{end} has {end - first} ids, but {most} sequences run at "
            f"once{each}"
        )
