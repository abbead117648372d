"""The settings of one check, and the place of an error in the files of a model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from core.config import ModelConfig
from core.config.formats import Formats
from core.errors import CoreError
from core.options import Options
from frontends.commands.check.finding import Edit, Finding, Level, Report
from frontends.commands.check.places.paths import entry_at, place_in
from frontends.commands.check.places.tree import Tree

_QUOTED_PATH = re.compile(r"'(/[^']+)'")
_LINE = re.compile(r"' line (\d{1,9}):")


@dataclass(frozen=True)
class Settings:
    """What a check takes for given.

    options   those of a server that a check knows: config name, folders of backends and agents, rate limits
    gpus      numbers of the GPUs that instances may use
    formats   of the installed backends
    allowed   links in the repository that the command made, as paths
    """

    options: Options
    gpus: tuple[int, ...]
    formats: Formats
    allowed: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Place:
    """Makes findings about one model, with file, line and column where known; callers add them to `report`.

    report   of the model
    tree     of its config.pbtxt: lines and columns of fields are looked up in it
    config   tells which field the text of an error means
    """

    report: Report
    tree: Tree
    config: ModelConfig

    def error(self, error: CoreError, rule: str, edit: Edit | None = None) -> Finding:
        return self.finding(
            "error", rule, one_line(error.message), place_in(error.message, self.config), edit
        )

    def finding(
        self, level: Level, rule: str, text: str, path: str = "", edit: Edit | None = None
    ) -> Finding:
        """Return a finding about the field at a path of config.pbtxt.

        If config.pbtxt lacks the field, it is about a file of the model that `text` names in quotes; else
        about the innermost message of the path that is there, or about the folder without a config.pbtxt.
        """
        file = self.report.config_file
        entry, there = entry_at(self.tree, path) if path else (None, False)
        if not there and (named := self._file_in(text)) is not None:
            found = _LINE.search(text)
            line = int(found[1]) if found else 0
            return Finding(level, rule, text, named, line, int(line > 0), edit=edit)
        if file is None:
            return Finding(level, rule, text, self.report.folder, edit=edit)
        if entry is None:
            return Finding(level, rule, text, file, 1, 1, edit=edit)
        line, column = self.tree.line_and_column(entry.name_start)
        end_line, end = self.tree.line_and_column(max(entry.end, entry.name_start + 1))
        return Finding(level, rule, text, file, line, column, end if end_line == line else 0, edit)

    def _file_in(self, text: str) -> Path | None:
        for match in _QUOTED_PATH.finditer(text):
            path = Path(match[1])
            if path.is_relative_to(self.report.folder) and path.is_file():
                return path
        return None


def one_line(text: str) -> str:
    """Return the text of an error on one line."""
    return " ".join(text.split())
