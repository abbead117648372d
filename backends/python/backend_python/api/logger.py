"""Logger: write lines to the server's log."""

from __future__ import annotations

import enum
import sys
from typing import ClassVar

from backend_python.api.arguments import text
from backend_python.api.host import current


class LogLevel(enum.IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


class Logger:
    """Writes to the server's log, with the file and line of the call. Any thread."""

    INFO: ClassVar = LogLevel.INFO
    WARNING: ClassVar = LogLevel.WARNING
    ERROR: ClassVar = LogLevel.ERROR
    VERBOSE: ClassVar = LogLevel.VERBOSE

    @staticmethod
    def log(message: str, level: LogLevel = LogLevel.INFO) -> None:
        if not isinstance(level, LogLevel):
            raise TypeError(f"log() takes a level such as Logger.INFO, found {level!r}")
        _write(message, level)

    @staticmethod
    def log_info(message: str) -> None:
        _write(message, LogLevel.INFO)

    @staticmethod
    def log_warn(message: str) -> None:
        _write(message, LogLevel.WARNING)

    @staticmethod
    def log_error(message: str) -> None:
        _write(message, LogLevel.ERROR)

    @staticmethod
    def log_verbose(message: str) -> None:
        _write(message, LogLevel.VERBOSE)


Logger.LogLevel = LogLevel  # type: ignore[attr-defined]  # named so in Triton


def _write(message: str, level: LogLevel) -> None:
    line = text("Logger: message", message)
    caller = sys._getframe(2)
    current().log(level, caller.f_code.co_filename, caller.f_lineno, line)
