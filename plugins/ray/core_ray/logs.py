"""The log of a replica's server: in the log file of the replica, which the dashboard shows, and in errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

SERVE = "ray.serve"  # Serve's own logger, whose handlers write the file of a replica


class ToReplicaLog(logging.Handler):
    """Passes the records of one logger to the handlers of Serve's logger."""

    def emit(self, record: logging.LogRecord) -> None:
        serve = logging.getLogger(SERVE)
        if serve.isEnabledFor(record.levelno):
            serve.handle(record)


def follow(logger: logging.Logger) -> None:
    """Write what a logger logs to the log of the replica, from now on. A second call does nothing."""
    if not any(isinstance(each, ToReplicaLog) for each in logger.handlers):
        logger.addHandler(ToReplicaLog())
        logger.propagate = False
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextmanager
def errors_of(logger: logging.Logger) -> Iterator[list[str]]:
    """Collect the texts of errors that a logger logs within the block."""
    handler = _Errors()
    logger.addHandler(handler)
    try:
        yield handler.texts
    finally:
        logger.removeHandler(handler)
