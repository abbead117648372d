"""The report for a terminal: a table, what the server says, the comparison, errors and notes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from core_bench.measure.result import CaseResult
from core_bench.measure.spread import Interval
from core_bench.report.columns import Column, columns, server_columns
from core_bench.report.numbers import count_text, time_text
from core_bench.report.outcome import Comparison, Outcome, comparisons, notes

_WIDTH_OF_PIPES = 160


def print_report(outcome: Outcome, console: Console | None = None) -> None:
    """Print everything. In a pipe lines are at most 160 characters wide, and have no colours."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_OF_PIPES, file=console.file, no_color=True)
    for side in outcome.sides:
        cases = outcome.of(side)
        if not cases:
            console.print(f"{side.name}: nothing was measured", markup=False)
            continue
        console.print(Text(_title(cases[0]), "bold"))
        _print(console, cases, columns(cases))
        own = server_columns(cases)
        if own:
            console.print(Text("time in the server, for each request"))
            _print(console, cases, own)
        _print_errors(console, cases)
    found = comparisons(outcome)
    if found:
        _print_comparison(console, outcome, found)
    if outcome.searched:
        console.print(Text(_best(outcome), "bold"))
    for note in notes(outcome):
        console.print(Text(f"note: {note}"), soft_wrap=True)


def print_rounds(outcome: Outcome) -> None:
    """Print a line for each round."""
    for case in outcome.results:
        for number, each in enumerate(case.rounds):
            parts = [f"{each.rate():,.0f} answers/s"]
            for quantile in (0.5, 0.99):
                found = each.latency_s(quantile)
                parts.append(f"p{100 * quantile:g} {time_text(found)}" if found is not None else "")
            print(f"{case.side.name}, {case.level.label}, round {number + 1}: {', '.join(parts)}")


def _title(case: CaseResult) -> str:
    rounds = max(len(case.rounds), 1)
    found = case.rate()
    sure = f", intervals of {found.coverage:.0%}" if found and found.coverage else ""
    return f"{case.side.name}, medians of {rounds} {'rounds' if rounds > 1 else 'round'}{sure}"


def _print(console: Console, cases: Sequence[CaseResult], shown: Sequence[Column]) -> None:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for number, column in enumerate(shown):
        table.add_column(column.title, justify="right" if number else "left", no_wrap=True)
    for case in cases:
        table.add_row(*(Text(column.text(case)) for column in shown))
    console.print(table)


def _print_errors(console: Console, cases: Sequence[CaseResult]) -> None:
    for case in cases:
        for text, count in list(case.errors().items())[:10]:
            console.print(
                Text(f"  {count:,} errors at {case.level.label}: {text}", "red"), soft_wrap=True
            )


def _print_comparison(console: Console, outcome: Outcome, found: Sequence[Comparison]) -> None:
    first, second = outcome.sides
    console.print(Text(f"{second.name} divided by {first.name}, round by round", "bold"))
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("load", "answers/s", "p50", "p99", "server CPU"):
        table.add_column(title, justify="right" if title != "load" else "left", no_wrap=True)
    for each in found:
        table.add_row(each.level, *map(ratio_text, (each.rate, each.p50, each.p99, each.cpu)))
    console.print(table)


def ratio_text(found: Interval | None) -> str:
    """Return '1.24 (1.20 … 1.31)'; '=' before it says that the bounds include 1: no difference is known."""
    if found is None:
        return "-"
    same = "= " if found.low <= 1 <= found.high else ""
    if not found.coverage:
        return f"{found.median:.2f}"
    return f"{same}{found.median:.2f} ({found.low:.2f} … {found.high:.2f})"


def _best(outcome: Outcome) -> str:
    wanted = outcome.searched
    if outcome.best is None:
        return f"{wanted}: no load that was measured"
    rate = outcome.best.rate()
    assert rate is not None
    quantile = outcome.objective.quantile if outcome.objective else 0.99
    latency = outcome.best.latency(quantile)
    name = outcome.objective.name if outcome.objective else "p99"
    shown = f", {name} {time_text(latency.median)}" if latency else ""
    text = f"{wanted}: {outcome.best.level.label}, {count_text(rate.median)} answers/s{shown}"
    if outcome.objective and latency and latency.median > outcome.objective.seconds:
        text += (
            ", above the objective when measured again: at its edge, or the machine is not quiet"
        )
    return text
