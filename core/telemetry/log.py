"""The log in Triton's line format.

    I0730 09:15:02.000123 4711 manager.py:80] "loading: mnist:1"

All parts of the server log to logging.getLogger("core"); records of other libraries get the same form.
Texts are quoted and escaped, so text of a client cannot forge a log line.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

from core.errors import CoreError
from core.options import Options
from core.telemetry.log_file import LogFile
from core.telemetry.log_settings import ISO8601, LogSettings

logger = logging.getLogger("core")

LONGEST_MESSAGE = 64 * 1024  # characters; messages contain names that clients choose

_LETTERS = {logging.DEBUG: "I", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E"}

# Written by `configure` on the main thread, then by `change` on the loop's; read by every thread.
_handlers: Sequence[logging.Handler] = ()  # made by the last call of `configure`
_settings = LogSettings()
_shown = frozenset((logging.INFO, logging.WARNING, logging.ERROR))  # the enabled severities


def configure(
    options: Options, stream: TextIO | None = None, console: logging.Handler | None = None
) -> None:
    """Set up the log from the options; replace the setup of an earlier call.

    stream    instead of stderr; --log-file takes precedence
    console   shows the log instead of lines on stderr, and beside a log file
    A log file that cannot be opened is an error in the log, which then goes to console or stream.
    """
    global _handlers
    settings = LogSettings.of(options)
    handlers = [] if console is None else [console]
    failure: OSError | None = None
    if options.log_file:
        try:
            handlers.append(LogFile(options.log_file))
        except OSError as error:
            failure = error
            settings = replace(settings, log_file="")
    root = logging.getLogger()
    for handler in _handlers:
        root.removeHandler(handler)
        handler.close()
    _handlers = handlers or [logging.StreamHandler(stream or sys.stderr)]
    _apply(settings)
    for handler in _handlers:
        handler.addFilter(lambda record: _severity(record.levelno) in _shown)
        root.addHandler(handler)
    if failure is not None:
        logger.error("failed to open the log file: %s", failure)


def current() -> dict[str, Any]:
    """Return the settings in effect, by their names in the protocol (LogSettings)."""
    return _settings.as_dict()


def change(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Change settings and return all; the next line is written with them. Loop thread.

    changes   name → value, None for no change
    Raises CoreError for an invalid change; then nothing changes.
    """
    _apply(_settings.changed(changes))
    return current()


def _apply(settings: LogSettings) -> None:
    global _settings, _shown
    on = {
        logging.DEBUG: settings.log_verbose_level > 0,
        logging.INFO: settings.log_info,
        logging.WARNING: settings.log_warning,
        logging.ERROR: settings.log_error,
    }
    _settings, _shown = settings, frozenset(level for level in on if on[level])
    for handler in _handlers:
        handler.setFormatter(LineFormatter(settings.log_format))
    # The level check drops disabled records before the filter runs.
    logger.setLevel(min(_shown, default=logging.CRITICAL + 1))


def failed(id: str, error: CoreError) -> None:
    """Log a refused or failed request if the verbose log is on. Any thread.

    id   the client's name for the request, "" for none
    """
    if logger.isEnabledFor(logging.DEBUG):
        label = f"[request id: {id or '<id_unknown>'}]"
        text = error.message.removeprefix(label).lstrip()
        logger.debug("%s Infer failed: %s", label, text, stacklevel=2)


def block(text: str) -> None:
    """Log a text of several lines unescaped, such as a table. It must not contain text of a client."""
    logger.info("%s", text, extra={"block": True}, stacklevel=2)


class LineFormatter(logging.Formatter):
    """Formats a record as one line (several for `block`), then its traceback, if it has one, indented."""

    def __init__(self, form: str):
        super().__init__()
        self._start = _start_iso8601 if form == ISO8601 else _start_default

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, without the last newline."""
        start = (
            f"{self._start(record)} {record.process} {escaped(record.filename)}:{record.lineno}] "
        )
        if getattr(record, "block", False):
            return f"{start}\n{record.getMessage()}\n"
        message = record.getMessage()
        if len(message) > LONGEST_MESSAGE:
            left_out = len(message) - LONGEST_MESSAGE
            message = f"{message[:LONGEST_MESSAGE]} [{left_out} characters more]"
        lines = [start + escaped(json.dumps(message, ensure_ascii=False))]
        traceback = record.exc_text  # of another process
        if record.exc_info and record.exc_info[0] is not None:
            traceback = self.formatException(record.exc_info)
        if traceback:
            lines += ["    " + escaped(line) for line in traceback.splitlines()]
        return "\n".join(lines)


def escaped(text: str) -> str:
    """Return the text with unprintable characters replaced by escapes such as \\n and \\u001b."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _start_default(record: logging.LogRecord) -> str:
    moment = time.gmtime(record.created)
    micros = int(record.created % 1 * 1e6)
    return f"{_letter(record)}{time.strftime('%m%d %H:%M:%S', moment)}.{micros:06d}"


def _start_iso8601(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(record.created))} {_letter(record)}"


def _letter(record: logging.LogRecord) -> str:
    return _LETTERS[_severity(record.levelno)]


def _severity(level: int) -> int:
    """Return the one of four severities that a level belongs to."""
    return max((each for each in _LETTERS if each <= level), default=logging.DEBUG)
