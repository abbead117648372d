"""Progress: one line that changes on a terminal; nothing in a pipe or a file."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from core_tune.observation import Observation


class Progress:
    """`step` says what is done, `detail` how far that is. `clear` removes the line."""

    def __init__(self, stream: TextIO | None = None):
        self._stream = stream or sys.stderr
        self._on = self._stream.isatty()
        self._step = ""

    def step(self, text: str) -> None:
        self._step = text
        self._show(text)

    def detail(self, text: str) -> None:
        self._show(f"{self._step}: {text}")

    def measured(self, seen: Observation) -> None:
        """Show nothing: the report has all measurements."""

    def clear(self) -> None:
        if self._on and self._step:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._step = ""

    def _show(self, text: str) -> None:
        if self._on:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{text[:width]}")
            self._stream.flush()
