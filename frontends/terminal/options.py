"""TerminalOptions: the flag --terminal."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from core.options import Section, group
from core.options.values import choice

AUTO, ALWAYS, NEVER = "auto", "always", "never"

_logging = group("Logging")


@dataclass(kw_only=True)
class TerminalOptions(Section):
    """The flag of the console."""

    # fmt: off
    terminal: str = _logging(choice(AUTO, ALWAYS, NEVER), NEVER,
        "Write lines for a person instead of log lines to the console: auto if stderr is a terminal "
        "(docs/operate/terminal.md).")
    # fmt: on

    @property
    def is_readable(self) -> bool:
        """Whether the console is for a person: with `always`, and with `auto` if stderr is a terminal."""
        return self.terminal == ALWAYS or (self.terminal == AUTO and sys.stderr.isatty())

    @property
    def has_colours(self) -> bool:
        """Whether lines have colours even if stderr is no terminal: with `always`, unless NO_COLOR is set."""
        return self.terminal == ALWAYS and not os.environ.get("NO_COLOR")
