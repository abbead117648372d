"""Finding: one fault of a model, where it is, and the edit that mends it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

_LONGEST_TEXT = 2000

Level = Literal["error", "warning", "note"]

RULES = {
    "syntax": "config.pbtxt follows the text format of ModelConfig",
    "configuration": "the configuration keeps the rules of a load",
    "name": "the name in config.pbtxt is that of the folder",
    "layout": "a model lies in <repository>/<model>/<version>/<file>",
    "version": "the version policy selects versions that are there",
    "backend": "the backend of the model is installed",
    "file": "the model's file fits the configuration and the installed runtime",
    "parameter": "the backend knows the parameters",
    "ensemble": "the steps of an ensemble fit their models",
    "labels": "the label file names each class once",
    "data": "files of initial states and warm-up samples are there and have the right size",
    "resource": "an execution can get its resources of --rate-limit",
    "link": "links stay in the repository",
    "limit": "files and folders are small enough to be checked",
    "migration": "another server wrote the model",
    "unchecked": "only a load can check the rest",
    "load": "the model loads (--load)",
}
"""Identifier of each rule → what it demands."""


@dataclass(frozen=True)
class Edit:
    """A change of the model's configuration file that has no alternative.

    start, end   offsets in the text of the file, in characters
    text         what takes the place of that range
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Finding:
    """One fault, or a note.

    rule           a key of RULES
    file           the file or folder that is at fault; None if it is unknown
    line, column   place in the file, from 1; 0 if unknown
    end_column     behind the place, on the same line; 0 if unknown
    edit           what mends it; None without one right answer
    """

    level: Level
    rule: str
    text: str
    file: Path | None = None
    line: int = 0
    column: int = 0
    end_column: int = 0
    edit: Edit | None = None


@dataclass
class Report:
    """What is found of one model.

    name, folder   of the model
    config_file    its config.pbtxt, or the file that --model-config-name selects; None if none can be read
    config_text    the content of that file
    loaded         what --load found of a model that loads, for people; else ""
    mended         edits that --write has put into the file
    """

    name: str
    folder: Path
    config_file: Path | None = None
    config_text: str = ""
    findings: list[Finding] = field(default_factory=list)
    loaded: str = ""
    mended: frozenset[Edit] = frozenset()

    def add(self, finding: Finding) -> None:
        """Add a finding, unless the report has it already. A long text is shortened: a file may choose it."""
        if len(finding.text) > _LONGEST_TEXT:
            finding = replace(finding, text=f"{finding.text[:_LONGEST_TEXT]}…")
        if finding not in self.findings:
            self.findings.append(finding)

    def is_mended(self, finding: Finding) -> bool:
        return finding.edit is not None and finding.edit in self.mended

    def count(self, level: Level) -> int:
        return sum(each.level == level for each in self.findings)
