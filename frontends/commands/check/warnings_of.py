"""Collects what core and its backends log as warnings or errors in a `with` block."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_FILLED = "autofilled max_batch_size"


class _Collected(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            text = record.getMessage()
            if not text.startswith(_FILLED) and text not in self.found:
                self.found.append(text)
        return False


@contextmanager
def warnings_of() -> Iterator[list[str]]:
    """Yield a list that gets the texts of warnings and errors, each once; no line reaches the log meanwhile.

    The warning that core chose max_batch_size is left out: the configuration leaves the size open.
    """
    logger, collected = logging.getLogger("core"), _Collected()
    logger.addFilter(collected)
    try:
        yield collected.found
    finally:
        logger.removeFilter(collected)
