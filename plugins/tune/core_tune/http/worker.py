"""The process of a search: reads a JSON document, and prints a line "<event> <JSON>" for each event.

step          what is measured next
measurement   what was measured, as in the document of --json
report        the document of --json; or `failed` with an error
SIGINT or SIGTERM ends the search. The model has its own settings again when the process ends.
"""

from __future__ import annotations

import sys
from typing import Any

import orjson
from core_bench.http.process_events import tell

from core.errors import CoreError
from core_tune.command import run
from core_tune.flags.plan import plan_of
from core_tune.observation import Observation
from core_tune.report.json_file import document, measurement
from core_tune.report.progress import Progress


class Events(Progress):
    """The progress of a search, as events."""

    def step(self, text: str) -> None:
        tell("step", {"text": text})

    def detail(self, text: str) -> None:
        """Tell nothing: a step takes a few seconds."""

    def measured(self, seen: Observation) -> None:
        tell("measurement", {**measurement(seen), "shown": seen.settings.shown})


def main() -> int:
    """Search, and return the exit status."""
    wanted: dict[str, Any] = orjson.loads(sys.stdin.buffer.read())
    try:
        plan = plan_of(wanted["arguments"])
        outcome = run(plan, Events())
    except CoreError as error:
        tell("failed", {"error": error.message})
        return 1
    except KeyboardInterrupt:
        tell("failed", {"error": "the search was ended before anything was found"})
        return 130
    found = document(outcome, "")
    for each, row in zip(outcome.found.limits, found["settings"], strict=True):
        row["shown"] = each.shown
    found["now_shown"] = outcome.space.current.shown
    found["best_shown"] = outcome.best.shown if outcome.best else None
    tell("report", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
