"""Report: what was changed while a server served, as lines and as JSON."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from pathlib import Path

from core_bench.plan import Objective
from core_bench.report.numbers import time_text

from core_tune.configuration import text as config_text
from core_tune.online.loop import Event
from core_tune.online.watched import WatchedServer

FORMAT = 1


class Report:
    """`add` prints an event at once, `ended` what is different at the end."""

    def __init__(self, server: WatchedServer, objective: Objective):
        self._server, self._objective = server, objective
        self._before = server.now
        self.events: list[Event] = []
        bound = time_text(objective.seconds)
        print(f"{objective.name} \u2264 {bound}, beginning with {server.now.shown}", flush=True)

    def add(self, event: Event) -> None:
        self.events.append(event)
        clock = time.strftime("%H:%M:%S", time.localtime(event.at_s))
        done = f"now {event.settings.shown}: " if event.changed else ""
        print(f"{clock} {done}{event.reason}", flush=True)

    def ended(self, path: Path | None) -> tuple[str, str]:
        """Print the difference of config.pbtxt, and return its texts before and after.

        path   of the file; None if it is not known
        """
        now = self._server.now
        changes = sum(each.changed for each in self.events)
        if now == self._before:
            print(f"the model has {now.shown}, as at the beginning, after {changes} changes")
        else:
            print(f"the model keeps {now.shown}; it had {self._before.shown}")
            if now.instances != self._before.instances:
                print("the number of instances lasts until the next load")
            if replace(now, instances=self._before.instances) != self._before:
                print(
                    "batches and delay are live settings: they last until "
                    "POST /control/model_settings.reset, also over loads"
                )
        before = config_text.read(path) if path else ""
        after = config_text.with_settings(before, self._before, now, self._server.threads)
        print(
            config_text.difference(str(path or "config.pbtxt"), before, after), end="", flush=True
        )
        return before, after

    def json_text(self) -> str:
        """Return all events. Names end with the unit."""
        document = {
            "format": FORMAT,
            "objective": {"name": self._objective.name, "s": self._objective.seconds},
            "before": asdict(self._before),
            "now": asdict(self._server.now),
            "events": [asdict(each) for each in self.events],
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
