"""The log of TensorRT: into our log, and into the texts of errors.

A failed call of TensorRT returns no reason. TensorRT logs it during the call, on the same thread.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

logger = logging.getLogger("core")

_LEVELS = {  # by the name of ILogger.Severity
    "INTERNAL_ERROR": logging.ERROR,
    "ERROR": logging.ERROR,
    "WARNING": logging.WARNING,
    "INFO": logging.DEBUG,  # some lines for each engine
    "VERBOSE": logging.DEBUG,
}
_KEPT = 8  # errors that are kept per call


class Reports:
    """The errors that TensorRT has logged on each thread since they were last taken."""

    def __init__(self) -> None:
        self._local = threading.local()

    def report(self, severity: str, message: str) -> None:
        """Log one line of TensorRT. Keep it for `take` if it is an error, up to _KEPT lines a thread.

        TensorRT calls this method on any thread. It must not raise.
        """
        level = _LEVELS.get(severity, logging.INFO)
        if level >= logging.ERROR:
            errors = self._errors()
            if len(errors) < _KEPT:
                errors.append(" ".join(message.split()))
            level = logging.DEBUG  # it becomes part of an error that names the model
        logger.log(level, "TensorRT: %s", message)

    def take(self) -> str:
        """Remove the errors of this thread and return them in one line; "" if there are none."""
        errors = self._errors()
        text = "; ".join(dict.fromkeys(errors))
        errors.clear()
        return text

    def _errors(self) -> list[str]:
        errors: list[str] | None = getattr(self._local, "errors", None)
        if errors is None:
            errors = self._local.errors = []
        return errors


def logger_of(trt: Any, reports: Reports) -> Any:
    """Return an ILogger of TensorRT that writes to `reports`. TensorRT uses the first one of a process."""

    class Logger(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, msg: str) -> None:
            reports.report(severity.name, msg)

    return Logger()
