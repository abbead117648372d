"""keep: watches a server, and changes what the Keeper decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core_bench.report.numbers import count_text

from core.errors import invalid
from core_tune.flags.plan import Plan
from core_tune.observation import Refused
from core_tune.online.keeper import Decision, Keeper, latency_text
from core_tune.online.watched import WatchedServer
from core_tune.online.window import Estimator, Window
from core_tune.queueing.arrivals import Arrivals
from core_tune.queueing.limit import Traffic
from core_tune.settings import Settings, Space, steps
from core_tune.tuning import PARTS, delays_of

_INSTANCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


@dataclass(frozen=True)
class Event:
    """Something that a reader wants to know: what was changed, or why nothing was.

    at_s   seconds since 1970
    """

    at_s: float
    settings: Settings
    changed: bool
    reason: str


def keep(
    server: WatchedServer,
    keeper: Keeper,
    *,
    every_s: float,
    seconds: float,
    watch: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Event]:
    """Generate what happens, for some seconds. Raises CoreError if the server is lost."""
    end = clock() + seconds
    while clock() < end:
        sleep(min(every_s, max(end - clock(), 0)))
        window = server.window()
        decision = keeper.decide(window)
        watch(shown(window, keeper))
        if decision is not None:
            yield _acted(server, keeper, window, decision)


def settle(server: WatchedServer, keeper: Keeper) -> Iterator[Event]:
    """Undo a change that has not been judged, at the end. Raises CoreError if the server is lost."""
    window = server.window()
    if (decision := keeper.unjudged(window)) is not None:
        yield _acted(server, keeper, window, decision)


def _acted(server: WatchedServer, keeper: Keeper, window: Window, decision: Decision) -> Event:
    if decision.settings is None:
        return Event(time.time(), server.now, False, decision.reason)
    try:
        server.apply(decision.settings)
    except Refused as error:
        keeper.failed(decision)
        reason = f"the server refuses {decision.settings.shown}: {error}"
        return Event(time.time(), server.now, False, reason)
    keeper.changed(window, decision)
    return Event(time.time(), server.now, True, decision.reason)


def shown(window: Window, keeper: Keeper) -> str:
    """Return one line about a window."""
    parts = [f"{count_text(window.rate)}/s"]
    if keeper.latency_s and window.requests:
        parts.append(f"{keeper.name} {latency_text(keeper.latency_s)}")
    return ", ".join([*parts, window.settings.shown])


def keeper_of(server: WatchedServer, plan: Plan, processors: int) -> Keeper:
    """Return the keeper of an objective, which chooses among what changes in place.

    That is the number of instances, and with live settings of the server batches and their delay.
    Raises CoreError for values that cannot be chosen.
    """
    now, instances, objective = server.now, plan.instances, plan.objective
    counts = instances or [
        each for each in _INSTANCES if each <= max(2 * processors, now.instances)
    ]
    counts = sorted({*counts, now.instances})
    space = Space(now, counts, [now.batch], [now.delay_us])
    if server.live:
        most, rows = server.most_rows, max(plan.side.batch, 1)
        space = Space(
            now,
            counts,
            plan.batches or [each for each in steps(rows, most) if each > 1],
            plan.delays_us or delays_of(objective.seconds),
            plan.parts or PARTS,
            rows=rows,
        )
    elif plan.batches or plan.delays_us or plan.parts:
        raise invalid(
            "batches and delays change in place only by live settings, which need a server with the "
            "plugin core-settings, and dynamic_batching in the configuration of the model: leave out "
            "--batch-sizes, --delays and --wait-for"
        )
    arrivals = Arrivals(objective.quantile, objective.seconds)
    traffic = Traffic(1, max(server.most_rows, 1), arrivals)
    estimator = Estimator(traffic, processors)
    return Keeper(estimator, list(space), objective.name, objective.seconds)
