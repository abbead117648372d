"""Messages of the program in the server's log, and callbacks that get every message of the log."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable
from contextlib import suppress

from tritonserver._api._enums import LogLevel

LogCallback = Callable[[LogLevel, str, int, int, str], object]
"""Gets level, file, line, time in nanoseconds since 1970, and text of a message, on the thread that logs."""

logger = logging.getLogger("core")

_LEVELS = {
    LogLevel.INFO: logging.INFO,
    LogLevel.WARN: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.VERBOSE: logging.DEBUG,
}
_BY_LEVEL = {number: level for level, number in _LEVELS.items()}


def LogMessage(level: LogLevel, message: str) -> None:
    """Write a message to the server's log, with file and line of the caller."""
    caller = inspect.stack()[1]
    log_message(level, os.path.basename(caller.filename), caller.lineno, message)


def log_message(level: LogLevel, filename: str, line: int, message: str) -> None:
    """Write a message to the server's log with another file and line."""
    number = _LEVELS[level]
    if logger.isEnabledFor(number):
        record = logger.makeRecord(logger.name, number, filename, line, message, (), None)
        logger.handle(record)


class _Callback(logging.Handler):
    """Passes the records of the server's log to a callback. An exception of the callback is dropped."""

    def __init__(self, callback: LogCallback):
        super().__init__()
        self.callback = callback

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):  # a log must not fail
            level = _BY_LEVEL.get(record.levelno, LogLevel.INFO)
            time_ns = int(record.created * 1e9)
            self.callback(level, record.filename, record.lineno, time_ns, record.getMessage())


_installed: list[_Callback] = []


def set_log_callback(callback: LogCallback | None) -> None:
    """Pass every message of the log to `callback` too, in place of the one before; None for no callback.

    The log is that of the process: all servers of the process share it.
    """
    while _installed:
        logger.removeHandler(_installed.pop())
    if callback is not None:
        _installed.append(_Callback(callback))
        logger.addHandler(_installed[0])
