"""Outcome: all that a run has found, for the reports."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from core_bench.plan import Objective

from core_tune.configuration import text
from core_tune.observation import Observation
from core_tune.queueing.limit import Traffic
from core_tune.search.search import Found
from core_tune.settings import Settings, Space


@dataclass(frozen=True)
class Outcome:
    """All that a run has found.

    traffic   that was sent
    path      of config.pbtxt, if it is known; texts: of it before and after
    """

    model: str
    objective: Objective
    space: Space
    traffic: Traffic
    found: Found
    path: Path | None
    texts: tuple[str, str]
    interrupted: bool
    seconds: float

    @property
    def best(self) -> Settings | None:
        return self.found.best

    @property
    def difference(self) -> str:
        """Return the difference of config.pbtxt."""
        name = os.path.relpath(self.path) if self.path else "config.pbtxt"
        name = str(self.path) if name.startswith("..") else name
        return text.difference(name, *self.texts)

    def last_at_rate(self, settings: Settings) -> Observation | None:
        """Return the last measurement of settings at a rate; None if there is none."""
        every = self.found.observations
        found = [each for each in every if each.settings == settings and each.rate]
        return found[-1] if found else None
