"""The report as one HTML page: tables and charts, without scripts, and without anything from another host."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np
from core_bench.report import document
from core_bench.report.charts import Axis, Line
from core_bench.report.numbers import count_text, time_text

from core_tune.observation import Observation
from core_tune.queueing.limit import latency, limit
from core_tune.queueing.machine import Machine
from core_tune.report.outcome import Outcome
from core_tune.report.table import lines, row, titles
from core_tune.settings import Settings

_POINTS = 24  # of a curve
_CURVE = (0.1, 1.1)  # of the limit
_HIGHEST = 20  # times the objective

_RATE = Axis("answers per second", False, count_text)
_MINUTES = Axis("minutes", False, lambda value: f"{value:.2g}")
_ROWS = Axis("rows of an execution", False, lambda value: f"{value:g}")


def page(outcome: Outcome, command: str) -> str:
    """Return the page. `command` is the command line that it reports."""
    objective = f"{outcome.objective.name} ≤ {time_text(outcome.objective.seconds)}"
    body = [f"<p><code>{escape(command)}</code></p>"]
    body += [f"<p>{escape(each)}</p>" for each in lines(outcome)]
    body.append(document.charts(_measured(outcome)))
    body.append("<h2>Settings</h2>")
    body.append(
        document.table(titles(outcome), [row(outcome, each) for each in outcome.found.limits])
    )
    body.append("<h2>The model of the queue</h2>")
    body.append(_machines(outcome))
    body.append(document.charts(_modelled(outcome)))
    if outcome.difference:
        body += ["<h2>Change of the configuration</h2>", document.difference(outcome.difference)]
    title = f"core tune: {outcome.model}, highest rate with {objective}"
    return document.document(title, "".join(body))


def _marked(outcome: Outcome) -> list[tuple[str, Settings]]:
    """Return the settings with a series of their own: the best ones, and those of now."""
    best, now = outcome.best, outcome.space.current
    found = [(f"best: {best.shown}", best)] if best is not None else []
    return found if best == now else [*found, (f"now: {now.shown}", now)]


def _measured(outcome: Outcome) -> str:
    """Return the charts of what was measured."""
    name, seconds = outcome.objective.name, outcome.objective.seconds
    every = [each for each in outcome.found.observations if each.latency_s]
    marked = _marked(outcome)
    alone = {settings for _, settings in marked}
    series = [Line("others", _points(o for o in every if o.settings not in alone), joined=False)]
    series += [
        Line(text, _points(o for o in every if o.settings == settings), joined=False)
        for text, settings in marked
    ]
    fastest = max((each.answered for each in every), default=1.0)
    series.append(Line("objective", [(0.0, seconds), (fastest, seconds)], dots=False))
    times = [(each.at_s / 60, each.answered) for each in every if each.rate]
    return document.figure(
        f"{name} by answers per second, all measurements",
        [each for each in series if each.points],
        _RATE,
        Axis(name, True, time_text),
    ) + document.figure(
        "Answers per second, in the order of the search",
        [Line("measured at a rate", times, joined=False)],
        _MINUTES,
        _RATE,
    )


def _points(observations: Iterable[Observation]) -> list[tuple[float, float]]:
    return [(each.answered, each.latency_s) for each in observations]


def _machines(outcome: Outcome) -> str:
    head = ["kind", "an execution", "and for each row", "at once without slowdown"]
    head += ["part that threads share", "outside of the instances"]
    rows = [
        [
            kind,
            time_text(each.base_s),
            time_text(each.row_s),
            f"{each.cores:g}",
            f"{each.shared:.0%}",
            time_text(each.front_s) if each.front_s else "0",
        ]
        for kind, each in outcome.found.machines.items()
    ]
    return document.table(head, rows)


def _modelled(outcome: Outcome) -> str:
    """Return the charts of the model beside what was measured."""
    name, curves = outcome.objective.name, []
    for text, settings in _marked(outcome):
        machine = outcome.found.machines.get(settings.kind)
        if machine is None or settings not in outcome.found.limits:
            continue
        curves.append(Line(f"{text}, predicted", _curve(outcome, machine, settings), dots=False))
        seen = [o for o in outcome.found.observations if o.settings == settings and o.rate]
        curves.append(Line(f"{text}, measured", _points(seen), joined=False))
    sizes = [
        (float(size.rows), size.seconds)
        for each in outcome.found.observations
        if each.settings.instances * each.settings.workers == 1
        for size in each.sizes
    ]
    made = ""
    if curves:
        made += document.figure(
            f"{name} by requests per second", curves, _RATE, Axis(name, True, time_text)
        )
    machine = outcome.found.machines.get(outcome.space.current.kind)
    if sizes and machine is not None:
        alone = machine.table(
            Settings(threads=outcome.space.current.threads), 1, int(max(sizes)[0])
        )[0]
        made += document.figure(
            "Time of an execution by its rows, one instance",
            [
                Line("measured", sizes, joined=False),
                Line("model", [(float(n + 1), float(t)) for n, t in enumerate(alone)], dots=False),
            ],
            _ROWS,
            Axis("time", False, time_text),
        )
    return made


def _curve(outcome: Outcome, machine: Machine, settings: Settings) -> list[tuple[float, float]]:
    """Return the predicted latency by rate: of a machine whose limit is the one that was found."""
    traffic, found = outcome.traffic, outcome.found.limits[settings]
    predicted = limit(machine, settings, traffic, found)
    # A machine that is twice as fast has half of the latencies at twice the rate, nearly.
    faster = found / predicted if predicted else 1.0
    rates = np.linspace(_CURVE[0], _CURVE[1], _POINTS) * (predicted or found)
    points = [(float(r * faster), latency(machine, settings, traffic, float(r))) for r in rates]
    return [each for each in points if each[1] < _HIGHEST * traffic.seconds]
