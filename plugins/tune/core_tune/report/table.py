"""The report for a terminal: the measured settings, the best of them, and the difference of config.pbtxt."""

from __future__ import annotations

from core_bench.report.numbers import count_text, time_text
from rich.console import Console
from rich.table import Table
from rich.text import Text

from core_tune.report.outcome import Outcome
from core_tune.settings import Settings

_WIDTH_OF_PIPES = 160
_SHOWN = 12


def print_report(outcome: Outcome, console: Console | None = None) -> None:
    """Print everything. In a pipe lines are at most 160 characters wide, and have no colours."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_OF_PIPES, file=console.file, no_color=True)
    objective = f"{outcome.objective.name} ≤ {time_text(outcome.objective.seconds)}"
    title = f"{outcome.model}, highest rate with {objective}"
    console.print(Text(title, "bold"))
    console.print(_table(outcome))
    for line in lines(outcome):
        console.print(Text(line), soft_wrap=True)
    if outcome.difference:
        console.print(Text(outcome.difference.rstrip("\n")), soft_wrap=True)


def _table(outcome: Outcome) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for number, title in enumerate(titles(outcome)):
        table.add_column(title, justify="right" if number else "left", no_wrap=True)
    shown = list(outcome.found.limits)[:_SHOWN]
    if outcome.space.current in outcome.found.limits and outcome.space.current not in shown:
        shown.append(outcome.space.current)
    for each in shown:
        style = "bold" if each == outcome.best else ""
        table.add_row(*(Text(text, style) for text in row(outcome, each)))
    return table


def titles(outcome: Outcome) -> list[str]:
    """Return the titles of the columns of `row`."""
    found = ["settings", "requests/s", "±", "measured at", "answers/s"]
    return [*found, f"its {outcome.objective.name}", "rows per batch"]


def row(outcome: Outcome, settings: Settings) -> list[str]:
    """Return what is known of measured settings, a text for each column."""
    seen = outcome.last_at_rate(settings)
    name = settings.shown + (" (now)" if settings == outcome.space.current else "")
    sure = 2 * outcome.found.deviations[settings]
    made = [name, count_text(outcome.found.limits[settings]), f"{100 * sure:.0f} %"]
    if seen is None:
        return [*made, "", "", "", ""]
    made += [f"{count_text(seen.rate)}/s", count_text(seen.answered), time_text(seen.latency_s)]
    executions = sum(size.count for size in seen.sizes)
    rows = sum(size.count * size.rows for size in seen.sizes)
    return [*made, f"{rows / executions:.2f}" if executions else ""]


def lines(outcome: Outcome) -> list[str]:
    """Return what a reader of the table has to know, one line each."""
    found, best, now = outcome.found, outcome.best, outcome.space.current
    made = []
    if outcome.interrupted:
        made.append("ended by Ctrl-C or SIGTERM; this is what was known by then")
    if best is None:
        made.append(_impossible(outcome))
    elif best == now:
        made.append(f"best: {best.shown}, as it is now")
    else:
        gain = ""
        if now in found.limits and found.limits[now] > 0:
            gain = f", {found.limits[best] / found.limits[now]:.2f} times the rate of {now.shown}"
        made.append(f"best: {best.shown}: {count_text(found.limits[best])} requests/s{gain}")
    count = len(found.observations)
    made.append(
        f"{count} measurements of {len(found.limits)} of {len(outcome.space)} settings in "
        f"{outcome.seconds / 60:.1f} minutes, no failed request"
    )
    reasons: dict[str, list[Settings]] = {}
    for settings, reason in found.refused.items():
        reasons.setdefault(reason, []).append(settings)
    for reason, refused in reasons.items():
        more = f" and {len(refused) - 1} others" if len(refused) > 1 else ""
        made.append(f"refused: {refused[0].shown}{more}: {reason}")
    if best is not None and best.workers != now.workers:
        made.append(f"note: the best needs a server with --workers={best.workers}")
    largest = max(each.batch for each in outcome.space)
    if best is not None and best.batch == largest > 1:
        made.append(
            f"note: the best has the largest batch, {largest}; a larger max_batch_size may be better"
        )
    return made


def _impossible(outcome: Outcome) -> str:
    fastest = min(outcome.found.observations, key=lambda each: each.latency_s)
    name = outcome.objective.name
    return (
        f"no settings keep {name} ≤ {time_text(outcome.objective.seconds)}; the lowest {name} is "
        f"{time_text(fastest.latency_s)}, with {fastest.settings.shown}: choose a larger objective, "
        "or make the model faster"
    )
