"""Progress: one line that changes on a terminal; nothing in a pipe or a file."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Protocol, TextIO

from core_bench.load.plan import Generator

if TYPE_CHECKING:
    from core_bench.measure.rounds import Measurement


class Progress(Protocol):
    """Shows what is measured."""

    def begin(self, measurement: Measurement) -> None:
        """Take the measurement, before its first round."""

    def __call__(self, text: str, generator: Generator) -> None:
        """Show what is measured; called several times a second."""

    def clear(self) -> None:
        """Show nothing any more, or all that is left to show."""


class TerminalProgress:
    """Progress as a line of a terminal, which `clear` removes."""

    def __init__(self, stream: TextIO | None = None):
        self._stream = stream or sys.stderr
        self._on = self._stream.isatty()
        self._text = ""
        self._last: tuple[float, int] | None = None

    def begin(self, measurement: Measurement) -> None:
        """Need nothing of the measurement."""

    def __call__(self, text: str, generator: Generator) -> None:
        if not self._on:
            return
        right, wrong = generator.progress
        now = time.monotonic()
        rate = ""
        if text == self._text and self._last and right >= self._last[1]:
            passed = now - self._last[0]
            rate = f", {(right - self._last[1]) / passed:,.0f}/s" if passed else ""
        self._text, self._last = text, (now, right)
        line = f"{text}: {right:,} answers{rate}" + (f", {wrong:,} errors" if wrong else "")
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r\x1b[K{line[:width]}")
        self._stream.flush()

    def clear(self) -> None:
        if self._on and self._text:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._text = ""
