"""Progress: one line that changes on a terminal; nothing in a pipe or a file."""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from typing import TextIO

_SHOWN_S = 0.2
_RATE_S = 10.0  # over which the rate is measured


class Progress:
    """How far a run is. `clear` removes the line.

    total_bytes   of all input files; 0 if unknown
    """

    def __init__(self, total_bytes: int, stream: TextIO | None = None):
        self._stream = stream or sys.stderr
        self._on = self._stream.isatty()
        self._total_bytes = total_bytes
        self._shown_s = 0.0
        self._marks: deque[tuple[float, int, int]] = deque()

    def __call__(self, done: int, done_bytes: int, failed: int) -> None:
        """Show the numbers of items and bytes that are done."""
        now_s = time.monotonic()
        if not self._on or now_s - self._shown_s < _SHOWN_S:
            return
        self._shown_s = now_s
        self._marks.append((now_s, done, done_bytes))
        while now_s - self._marks[0][0] > _RATE_S and len(self._marks) > 2:
            self._marks.popleft()
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r\x1b[K{self._text(done, done_bytes, failed)[:width]}")
        self._stream.flush()

    def clear(self) -> None:
        if self._on and self._shown_s:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _text(self, done: int, done_bytes: int, failed: int) -> str:
        parts = [f"{done:,} requests"]
        if self._total_bytes:
            parts.append(f"{min(100, 100 * done_bytes // self._total_bytes)} %")
        (then_s, first, first_bytes), (now_s, last, last_bytes) = self._marks[0], self._marks[-1]
        passed_s = now_s - then_s
        if passed_s > 0 and last > first:
            parts.append(f"{(last - first) / passed_s:,.0f}/s")
            left = max(0, self._total_bytes - last_bytes)
            if self._total_bytes and last_bytes > first_bytes:
                left_s = left * passed_s / (last_bytes - first_bytes)
                parts.append(f"{duration(left_s)} left")
        if failed:
            parts.append(f"{failed:,} failed")
        return ", ".join(parts)


def duration(time_s: float) -> str:
    """Return a time for people: 12 s, 3 min, 2.5 h."""
    if time_s < 90:
        return f"{time_s:.0f} s"
    if time_s < 5400:
        return f"{time_s / 60:.0f} min"
    return f"{time_s / 3600:.1f} h"
