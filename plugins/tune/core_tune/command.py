"""`core tune MODEL`: finds the settings of a model with which it serves most requests within an objective.

command line ─► Plan ─► server, LiveMeter ─► Search ─► Outcome ─► table, difference, JSON
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import invalid

if TYPE_CHECKING:
    from core_tune.flags.plan import Plan
    from core_tune.report.outcome import Outcome

summary = "find the settings of a model with which it serves most requests within an objective"

_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Search and report. Return the exit status: 1 if no settings keep the objective, 130 after Ctrl-C.

    Raises CoreError if the command line, the server, the model or its inputs are wrong, or requests fail.
    """
    # Imported here: the list of commands does not need them.
    from core_tune.flags.plan import plan_of
    from core_tune.flags.table import parser

    if not arguments:
        parser().print_help()
        return 2
    plan = plan_of(arguments)
    try:
        outcome = run(plan)
    except KeyboardInterrupt:
        print("ended by Ctrl-C before anything was found", file=sys.stderr)
        return _INTERRUPTED
    _report(plan, outcome, shlex.join(["core", "tune", *arguments]))
    if outcome.interrupted:
        return _INTERRUPTED
    return 0 if outcome.best is not None else 1


def run(plan: Plan) -> Outcome:
    """Search what a plan asks for. After Ctrl-C, return what was found so far.

    Raises CoreError, and KeyboardInterrupt if nothing was found. The model gets its settings back, also then.
    """
    from core_tune.report.progress import Progress
    from core_tune.server.meter import LiveMeter
    from core_tune.server.own import OwnServer
    from core_tune.tuning import tune

    progress = Progress()
    with contextlib.ExitStack() as open_parts:
        open_parts.callback(progress.clear)
        side = plan.side
        if plan.folder is not None:
            progress.step(f"starting a server for {plan.folder.name}")
            server = OwnServer(
                plan.folder.parent, plan.folder.name, side.protocol, plan.serve_flags
            )
            open_parts.enter_context(server)
            side = dataclasses.replace(side, url=server.url)
        meter = LiveMeter(side, plan.objective, round_s=plan.round_s, watch=progress.detail)
        open_parts.enter_context(meter)
        outcome = tune(plan, meter, progress.step, processors=len(os.sched_getaffinity(0)))
        if plan.apply and outcome.best is not None and not outcome.interrupted:
            meter.apply(outcome.best)
            meter.keep()
        return outcome


def _report(plan: Plan, outcome: Outcome, command: str) -> None:
    from core_tune.report.json_file import json_text
    from core_tune.report.table import print_report

    before, after = outcome.texts
    if plan.json != "-":
        print_report(outcome)
    if plan.json:
        _write_text(plan.json, json_text(outcome, command))
    if plan.write is not None and outcome.best is not None and after != before:
        _write_text(str(plan.write), after)
        print(f"written: {plan.write}", file=sys.stderr)


def _write_text(path: str, text: str) -> None:
    if path == "-":
        print(text, end="")
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise invalid(f"cannot write '{path}': {error.strerror}") from None
