"""The report as one HTML page: tables and charts, without scripts, and without anything from another host."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from core_bench.measure.result import CaseResult
from core_bench.report.charts import Axis, Line, chart, legend
from core_bench.report.columns import Column, columns, server_columns
from core_bench.report.numbers import count_text, time_text
from core_bench.report.outcome import Outcome, comparisons, notes
from core_bench.report.table import ratio_text

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; display: block; overflow-x: auto; }
td, th { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
th { color: var(--soft); font-weight: normal; }
.charts { display: flex; flex-wrap: wrap; gap: 1.5rem; }
figure { margin: 0; flex: 1 1 26rem; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; }
svg text { font-size: 11px; fill: currentColor; }
svg .grid { stroke: var(--line); }
.legend span { margin-right: 1rem; }
.legend i { display: inline-block; width: .8em; height: .8em; margin-right: .3em; }
.error { color: #c92a2a; }
"""


def page(outcome: Outcome, command: str) -> str:
    """Return the page. `command` is the command line that it reports."""
    names = " and ".join(dict.fromkeys(side.name for side in outcome.sides))
    body = [f"<h1>core bench: {escape(names)}</h1>", f"<p><code>{escape(command)}</code></p>"]
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
    body.append(f'<div class="charts">{_charts(outcome)}</div>')
    body += [f"<p>Note: {escape(each)}.</p>" for each in notes(outcome)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>core bench: {escape(names)}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _table(cases: Sequence[CaseResult], shown: Sequence[Column]) -> str:
    rows = [[column.text(case) for column in shown] for case in cases]
    return _rows([column.title for column in shown], rows)


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    titles = "".join(f"<th>{escape(each)}</th>" for each in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{titles}</tr>{lines}</table>"


def _comparison(outcome: Outcome) -> str:
    found = comparisons(outcome)
    if not found:
        return ""
    first, second = outcome.sides
    rows = [
        [each.level, *map(ratio_text, (each.rate, each.p50, each.p99, each.cpu))] for each in found
    ]
    title = f"<h2>{escape(second.name)} divided by {escape(first.name)}</h2>"
    return title + _rows(["load", "answers/s", "p50", "p99", "server CPU"], rows)


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
    made = ""
    for title, lines, across, up in figures:
        # With a single point, the tables say it all.
        if any(len(line.points) > 1 for line in lines):
            made += f"<figure><figcaption>{title}</figcaption>{chart(lines, across, up)}"
            made += f"{legend(lines)}</figure>"
    return made


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
