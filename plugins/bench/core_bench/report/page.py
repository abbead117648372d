"""The report as one HTML page: tables and charts, without scripts, and without anything from another host."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from core_bench.measure.result import CaseResult
from core_bench.report.charts import Axis, Line
from core_bench.report.columns import Column, columns, server_columns
from core_bench.report.document import charts, document, figure, table
from core_bench.report.numbers import count_text, time_text
from core_bench.report.outcome import Outcome, comparisons, notes
from core_bench.report.table import ratio_text


def page(outcome: Outcome, command: str) -> str:
    """Return the page. `command` is the command line that it reports."""
    names = " and ".join(dict.fromkeys(side.name for side in outcome.sides))
    body = [f"<p><code>{escape(command)}</code></p>"]
    for side in outcome.sides:
        cases = outcome.of(side)
        if not cases:
            continue
        body.append(f"<h2>{escape(side.name)}</h2>")
        body.append(_table(cases, columns(cases)))
        own = server_columns(cases)
        if own:
            body += ["<p>Time in the server, for each request:</p>", _table(cases, own)]
        body += [
            f'<p class="error">{count:,} errors at {escape(case.level.label)}: {escape(text)}</p>'
            for case in cases
            for text, count in case.errors().items()
        ]
    body.append(_comparison(outcome))
    body.append(charts(_charts(outcome)))
    body += [f"<p>Note: {escape(each)}.</p>" for each in notes(outcome)]
    return document(f"core bench: {names}", "".join(body))


def _table(cases: Sequence[CaseResult], shown: Sequence[Column]) -> str:
    rows = [[column.text(case) for column in shown] for case in cases]
    return table([column.title for column in shown], rows)


def _comparison(outcome: Outcome) -> str:
    found = comparisons(outcome)
    if not found:
        return ""
    first, second = outcome.sides
    rows = [
        [each.level, *map(ratio_text, (each.rate, each.p50, each.p99, each.cpu))] for each in found
    ]
    title = f"<h2>{escape(second.name)} divided by {escape(first.name)}</h2>"
    return title + table(["load", "answers/s", "p50", "p99", "server CPU"], rows)


def _charts(outcome: Outcome) -> str:
    seconds = Axis("latency", True, time_text)
    rate = Axis("answers per second", False, count_text)
    load = Axis("load", True, lambda value: f"{value:g}")
    tail = Axis("percentile", True, _percentile)
    rounds = Axis("round", False, lambda value: f"{value:g}")
    figures = [
        ("Answers per second", _by_load(outcome, "rate"), load, rate),
        ("p99 by load", _by_load(outcome, "p99"), load, seconds),
        ("p99 by answers per second", _by_rate(outcome), rate, seconds),
        ("Latency of all requests, by percentile", _tails(outcome), tail, seconds),
        ("Answers per second, by round", _by_round(outcome), rounds, rate),
    ]
    # With a single point, the tables say it all.
    return "".join(
        figure(title, lines, across, up)
        for title, lines, across, up in figures
        if any(len(line.points) > 1 for line in lines)
    )


def _cases(outcome: Outcome) -> list[tuple[str, list[CaseResult]]]:
    return [
        (side.name, sorted(outcome.of(side), key=lambda each: each.level.value))
        for side in outcome.sides
    ]


def _by_load(outcome: Outcome, what: str) -> list[Line]:
    lines = []
    for name, cases in _cases(outcome):
        found = [
            (each.level.value, value)
            for each in cases
            if (value := each.rate() if what == "rate" else each.latency(0.99))
        ]
        points = [(load, value.median) for load, value in found]
        lines.append(Line(name, points, [(value.low, value.high) for _, value in found]))
    return lines


def _by_rate(outcome: Outcome) -> list[Line]:
    lines = []
    for name, cases in _cases(outcome):
        pairs = [(each.rate(), each.latency(0.99)) for each in cases]
        points = [(rate.median, late.median) for rate, late in pairs if rate and late]
        lines.append(Line(name, points))
    return lines


def _tails(outcome: Outcome) -> list[Line]:
    """Return lines over 1 / (1 - quantile): each decade shows one more nine."""
    lines = []
    for _, cases in _cases(outcome):
        for case in cases:
            pooled = case.pooled("latency")
            most = min(pooled.count, 1_000_000)
            steps = [10 ** (i / 10) for i in range(61)]
            points = [(x, pooled.quantile(1 - 1 / x) / 1e9) for x in steps if x <= most]
            lines.append(Line(outcome.label(case), points, dots=False))
    return lines


def _by_round(outcome: Outcome) -> list[Line]:
    lines = []
    for _, cases in _cases(outcome):
        for case in cases:
            points = [(float(i + 1), each.rate()) for i, each in enumerate(case.rounds)]
            lines.append(Line(outcome.label(case), points))
    return lines


def _percentile(value: float) -> str:
    return f"p{100 * (1 - 1 / value):.6g}"
