"""`core bench MODEL`: sends load to a model and measures it.

command line ─► Plan ─► Target of each side ─► Measurement ─► Outcome ─► table, CSV, JSON, page
"""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import invalid

if TYPE_CHECKING:
    from core_bench.measure.result import CaseResult
    from core_bench.measure.rounds import Measurement
    from core_bench.measure.target import Target
    from core_bench.plan import Plan
    from core_bench.report.outcome import Outcome
    from core_bench.report.progress import Progress

summary = "send load to a model and measure it"

_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Measure and report. Return the exit status: 1 if requests failed, 130 after Ctrl-C.

    Raises CoreError if the command line, the server, the model or the input data are wrong.
    """
    # Imported here: the list of commands does not need them.
    from core_bench.flags.plan import plan_of
    from core_bench.flags.table import parser

    if not arguments:
        parser().print_help()
        return 2
    plan = plan_of(list(arguments))
    _check_files(plan)
    try:
        outcome = run(plan)
    except KeyboardInterrupt:
        print("ended by Ctrl-C before anything was measured", file=sys.stderr)
        return _INTERRUPTED
    _write(plan, outcome, _without_secrets(plan, shlex.join(["core", "bench", *arguments])))
    if outcome.interrupted:
        return _INTERRUPTED
    return 1 if outcome.failed else 0


def _without_secrets(plan: Plan, command: str) -> str:
    """Return the command line without the values of headers: reports are passed on."""
    values = {value for side in plan.sides for _, value in side.headers if value}
    for each in sorted(values, key=len, reverse=True):
        command = command.replace(each, "…")
    return command


def run(plan: Plan, progress: Progress | None = None) -> Outcome:
    """Measure what a plan asks for. After Ctrl-C, or without a server, return what was measured so far.

    progress   shows what is measured; by default on a terminal
    Raises CoreError if the measurement cannot begin.
    """
    from core_bench.measure.rounds import Ended, Measurement
    from core_bench.measure.search import search
    from core_bench.measure.target import Target
    from core_bench.report.progress import TerminalProgress

    with contextlib.ExitStack() as open_targets:
        targets = [open_targets.enter_context(Target(side, plan.timing)) for side in plan.sides]
        progress = progress or TerminalProgress()
        try:
            for target in targets:
                target.check(progress)
        finally:
            progress.clear()
        measurement = Measurement(plan, targets, progress)
        progress.begin(measurement)
        best = None
        try:
            measurement.warm_up(plan.levels[0])
            best = search(plan, measurement)
        except Ended:
            pass
        except KeyboardInterrupt:  # between two rounds
            measurement.interrupted = True
        finally:
            progress.clear()
        return _outcome(plan, targets, measurement, best)


def _outcome(
    plan: Plan, targets: list[Target], measurement: Measurement, best: CaseResult | None
) -> Outcome:
    from core_bench.report.outcome import Outcome

    searched = ""
    if plan.search == "knee":
        searched = "knee"
    elif plan.search:
        searched = "highest load within the objective"
    return Outcome(
        results=measurement.results,
        sides=plan.sides,
        objective=plan.objective,
        searched=searched,
        best=best,
        lost=measurement.lost,
        interrupted=measurement.interrupted,
        cpu_reason=targets[0].cpu.reason,
        threads=plan.timing.threads,
    )


def _check_files(plan: Plan) -> None:
    """Raise CoreError now for a file that could not be written after minutes of load."""
    for path in (plan.files or {}).values():
        folder = Path(path).parent
        if path != "-" and (not folder.is_dir() or Path(path).is_dir()):
            raise invalid(f"cannot write '{path}': '{folder}' is no folder, or the file is one")


def _write(plan: Plan, outcome: Outcome, command: str) -> None:
    from core_bench.report.csv_file import csv_text
    from core_bench.report.json_file import json_text
    from core_bench.report.page import page
    from core_bench.report.table import print_report, print_rounds

    files = plan.files or {}
    if files.get("json") != "-":
        if plan.verbose:
            print_rounds(outcome)
        print_report(outcome)
    texts = {
        "csv": lambda: csv_text(outcome.of(plan.sides[0]), plan.quantile, plan.verbose_csv),
        "json": lambda: json_text(outcome),
        "html": lambda: page(outcome, command),
    }
    for name, path in files.items():
        if path == "-":
            print(texts[name](), end="")
            continue
        try:
            Path(path).write_text(texts[name](), encoding="utf-8")
        except OSError as error:
            raise invalid(f"cannot write '{path}': {error.strerror}") from None
