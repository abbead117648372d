"""The process of a measurement: reads a JSON document, and prints a line "<event> <JSON>" for each event.

progress   what is measured, answers and errors so far
cases      the loads that have a round, with medians so far
report     the document of --json without rounds; or `failed` with an error
"""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import TYPE_CHECKING

import orjson

from core.errors import CoreError
from core_bench.command import run
from core_bench.flags.plan import plan_of
from core_bench.http.process_events import tell
from core_bench.measure.rounds import Measurement
from core_bench.plan import Level, Pace
from core_bench.report.json_file import document, shown_case

if TYPE_CHECKING:
    from core_bench.load.plan import Generator

_PACES = {"concurrency": Pace.CLOSED, "rate": Pace.CONSTANT}
_EVERY_S = 0.2


def main() -> int:
    """Measure, and return the exit status."""
    wanted = orjson.loads(sys.stdin.buffer.read())
    try:
        plan = plan_of(wanted["arguments"])
        levels = [Level(_PACES[wanted["kind"]], float(each)) for each in wanted["loads"]]
        outcome = run(dataclasses.replace(plan, levels=levels), Events())
    except CoreError as error:
        tell("failed", {"error": error.message})
        return 1
    except KeyboardInterrupt:
        return 130
    found = document(outcome)
    for case in found["cases"]:
        del case["rounds"]
    tell("report", found)
    return 0


class Events:
    """The watch of a measurement, in place of Progress."""

    def __init__(self) -> None:
        self._measurement: Measurement | None = None
        self._rounds = 0
        self._told_s = 0.0

    def begin(self, measurement: Measurement) -> None:
        """Take the measurement whose results are told."""
        self._measurement = measurement

    def __call__(self, text: str, generator: Generator) -> None:
        self._tell_cases()
        if (now_s := time.monotonic()) - self._told_s < _EVERY_S:
            return
        self._told_s = now_s
        right, wrong = generator.progress
        tell("progress", {"text": text, "right": right, "wrong": wrong, "at_s": now_s})

    def clear(self) -> None:
        """Tell what the last round has measured."""
        self._tell_cases()

    def _tell_cases(self) -> None:
        if self._measurement is None:
            return
        cases = [each for each in self._measurement.results if each.rounds]
        rounds = sum(len(each.rounds) for each in cases)
        if rounds != self._rounds:
            self._rounds = rounds
            tell("cases", {"cases": [shown_case(each) for each in cases]})


if __name__ == "__main__":
    sys.exit(main())
