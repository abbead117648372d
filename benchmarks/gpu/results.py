"""Results of all sections in one file, results.json, and the page beside it; written again after each row.

    machine    name → text
    sections   name → rows, seconds, and `error` or `left_out` with the reason

Whatever ends the benchmark, the rows so far are there. Sections run one after the other, each in a process of
its own: only one process writes at a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.gpu import page

NAME = "results.json"


class LeftOut(Exception):
    """A section cannot be measured on this machine; the text says why. This is no failure."""


def read(folder: Path) -> dict[str, Any]:
    """Return the results of a folder; empty ones if it has none."""
    file = folder / NAME
    if not file.exists():
        return {"machine": {}, "sections": {}}
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def write(folder: Path, found: Mapping[str, Any]) -> None:
    """Replace the results of a folder at once, then the page."""
    new = folder / f"{NAME}.new"
    new.write_text(json.dumps(found, indent=1))
    os.replace(new, folder / NAME)
    page.write(folder, found)


class Section:
    """The results of one section. Rows of an earlier run of it are forgotten; other sections stay."""

    def __init__(self, folder: Path, name: str, machine: Mapping[str, str]):
        self._folder = folder
        self._all = read(folder)
        self._all["machine"] = dict(machine)
        self._found: dict[str, Any] = {"rows": [], "seconds": 0.0}
        self._all["sections"].pop(name, None)  # a section that is measured again comes last
        self._all["sections"][name] = self._found
        write(folder, self._all)

    def add(self, row: Mapping[str, Any], seconds: float) -> None:
        """Add a row, which was there after `seconds`."""
        self._found["rows"].append(dict(row))
        self.note(seconds)

    def note(self, seconds: float, **more: str) -> None:
        """Write the seconds so far, and more about the section, such as its error."""
        self._found |= {"seconds": round(seconds, 1), **more}
        write(self._folder, self._all)


def rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose numbers have five digits: more are noise, and make it hard to read."""

    def short(value: Any) -> Any:
        if isinstance(value, list):
            return [short(each) for each in value]
        return float(f"{value:.5g}") if isinstance(value, float) else value

    return {name: short(value) for name, value in row.items()}


def note(folder: Path, name: str, **more: str) -> None:
    """Add what the process of a section could not write itself, such as that time ended it."""
    found = read(folder)
    found["sections"].setdefault(name, {"rows": [], "seconds": 0.0}).update(more)
    write(folder, found)
