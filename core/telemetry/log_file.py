"""LogFile: the file of --log-file.

The handler writes each line with one system call, so lines of several processes do not mix. After a log
rotation moves the file, the next line begins a new one.
"""

from __future__ import annotations

import logging
import os
import sys

from core.telemetry.losses import Losses


class LogFile(logging.Handler):
    """Log handler that appends records to a file. It reports lost records on stderr, at intervals.

    Any thread; the lock of logging.Handler covers `emit`.
    """

    def __init__(self, path: str):
        """Open the file. Raises OSError if it cannot be opened."""
        super().__init__()
        self._path = os.path.abspath(path)
        self._losses = Losses(self._say, "lines of the log are")
        self._is_torn = False  # the file ends in the middle of a line
        self._file = self._open()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:  # the record has wrong arguments: a bug in the caller
            self.handleError(record)
            return
        try:
            self._follow()
            if self._losses.total:
                self._write(self._gap())
                self._losses.end()
            self._write(text)
        except OSError as error:
            reason = f"the log file '{self._path}' cannot be written: {error.strerror or error}"
            self._losses.add(reason, 1)

    def close(self) -> None:
        self.acquire()
        try:
            if self._file >= 0:
                self._losses.flush()
                os.close(self._file)
                self._file = -1
        finally:
            self.release()
        super().close()

    def _follow(self) -> None:
        """Reopen the path if the file was replaced or removed. Raises OSError if that fails."""
        mine = os.fstat(self._file)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            there = None
        if there is None or (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino):
            before, self._file = self._file, self._open()
            os.close(before)
            self._is_torn = False

    def _write(self, text: str) -> None:
        """Append a text and a line end; begin a new line if the last write was cut. Raises OSError."""
        rest = f"{text}\n".encode(errors="backslashreplace")
        if self._is_torn:
            rest = b"\n" + rest
        while rest:
            written = os.write(self._file, rest)
            rest = rest[written:]
            self._is_torn = bool(rest)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def _gap(self) -> str:
        """Return the formatted line that says how many lines were lost before it."""
        text = "%d lines of the log were lost before this one: the file could not be written"
        return self.format(
            logging.LogRecord(
                "core", logging.WARNING, __file__, 0, text, (self._losses.total,), None
            )
        )

    @staticmethod
    def _say(text: str) -> None:
        """Write a line on stderr; do nothing if that fails."""
        try:
            print(text, file=sys.stderr, flush=True)
        except (OSError, ValueError):  # stderr is on a full disk, or closed
            pass
