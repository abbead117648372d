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

from core.errors import invalid, unavailable
from core_tune import signals

if TYPE_CHECKING:
    from core_tune.flags.plan import Plan
    from core_tune.report.outcome import Outcome
    from core_tune.report.progress import Progress

summary = "find the settings of a model with which it serves most requests within an objective"

_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Search and report. Return the exit status: 1 if no settings keep the objective, 130 if interrupted.

    Ctrl-C and SIGTERM interrupt it.
    Raises CoreError if the command line, the server, the model or its inputs are wrong, or requests fail.
    """
    # Imported here: the list of commands does not need them.
    from core_tune.flags.plan import plan_of
    from core_tune.flags.table import parser

    if not arguments:
        parser().print_help()
        return 2
    plan = plan_of(arguments)
    if plan.online:
        return _keep(plan)
    try:
        outcome = run(plan)
    except KeyboardInterrupt:
        print("ended by Ctrl-C or SIGTERM before anything was found", file=sys.stderr)
        return _INTERRUPTED
    command = _without_secrets(plan, shlex.join(["core", "tune", *arguments]))
    _report(plan, outcome, command)
    if outcome.interrupted:
        return _INTERRUPTED
    return 0 if outcome.best is not None else 1


def _keep(plan: Plan) -> int:
    """Keep the objective of a running server, and say what is changed.

    Ctrl-C and SIGTERM end it, as --minutes does.
    """
    from core_tune.online.loop import keep, keeper_of, settle
    from core_tune.online.report import Report
    from core_tune.online.watched import WatchedServer
    from core_tune.report.progress import Progress

    progress = Progress()
    with contextlib.ExitStack() as open_parts:
        open_parts.enter_context(signals.sigterm_interrupts())
        open_parts.callback(progress.clear)
        server = open_parts.enter_context(WatchedServer(plan.side))
        keeper = keeper_of(server, plan, processors=len(os.sched_getaffinity(0)))
        report = Report(server, plan.objective)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                for event in keep(
                    server, keeper, every_s=plan.every_s, seconds=plan.seconds, watch=progress.step
                ):
                    progress.clear()
                    report.add(event)
            for event in settle(server, keeper):
                report.add(event)
        finally:
            progress.clear()
            texts = report.ended(plan.write)
            if plan.files.get("json"):
                _write_text(plan.files["json"], report.json_text())
    if plan.write is not None and texts[0] != texts[1]:
        _write_text(str(plan.write), texts[1])
        print(f"written: {plan.write}", file=sys.stderr)
    return 0


def run(plan: Plan, progress: Progress | None = None) -> Outcome:
    """Search what a plan asks for. After Ctrl-C or SIGTERM, return what was found so far.

    progress   shows what is done; by default on a terminal
    Raises CoreError, and KeyboardInterrupt if nothing was found. The model gets its settings back, also then.
    """
    from core.devices.visible import gpus
    from core_tune.observation import Refused
    from core_tune.queueing.arrivals import Arrivals
    from core_tune.report.progress import Progress as TerminalProgress
    from core_tune.server.meter import LiveMeter
    from core_tune.server.own import OwnServer
    from core_tune.tuning import Hardware, tune

    progress = progress or TerminalProgress()
    with contextlib.ExitStack() as open_parts:
        open_parts.enter_context(signals.sigterm_interrupts())
        open_parts.callback(progress.clear)
        side, server = plan.side, None
        if plan.folder is not None:
            progress.step(f"starting a server for {plan.folder.name}")
            server = OwnServer(
                plan.folder.parent, plan.folder.name, side.protocol, plan.serve_flags
            )
            open_parts.enter_context(server)
            side = dataclasses.replace(side, url=server.url)
        objective = plan.objective
        arrivals = Arrivals(objective.quantile, objective.seconds, tuple(plan.intervals))
        meter = LiveMeter(
            side,
            arrivals,
            round_s=plan.round_s,
            server=server,
            watch=progress.detail,
            told=progress.measured,
        )
        open_parts.enter_context(meter)
        # Of a running server, the GPUs are not known.
        has_gpus = server is not None and bool(gpus())
        hardware = Hardware(len(os.sched_getaffinity(0)), has_gpus)
        outcome = tune(plan, meter, arrivals, progress.step, hardware)
        if plan.apply and outcome.best is not None and not outcome.interrupted:
            try:
                meter.apply(outcome.best)
            except Refused as error:
                raise unavailable(
                    f"the server refuses the best settings of model '{side.model}' "
                    f"({outcome.best.shown}): {error}"
                ) from None
            meter.keep()
        return outcome


def _report(plan: Plan, outcome: Outcome, command: str) -> None:
    from core_tune.report.csv_file import csv_text
    from core_tune.report.json_file import json_text
    from core_tune.report.page import page
    from core_tune.report.table import print_report

    before, after = outcome.texts
    texts = {
        "csv": lambda: csv_text(outcome),
        "html": lambda: page(outcome, command),
        "json": lambda: json_text(outcome, command),
    }
    if "-" not in plan.files.values():
        print_report(outcome)
    for form, path in plan.files.items():
        _write_text(path, texts[form]())
    if plan.write is not None and outcome.best is not None and after != before:
        _write_text(str(plan.write), after)
        print(f"written: {plan.write}", file=sys.stderr)


def _without_secrets(plan: Plan, command: str) -> str:
    """Return the command line without the values of headers: reports are passed on."""
    for _, value in sorted(plan.side.headers, key=lambda each: -len(each[1])):
        command = command.replace(value, "…") if value else command
    return command


def _write_text(path: str, text: str) -> None:
    if path == "-":
        print(text, end="")
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise invalid(f"cannot write '{path}': {error.strerror}") from None
