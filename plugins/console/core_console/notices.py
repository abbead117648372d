"""Notices: the last warnings and errors of the server's log."""

from __future__ import annotations

import logging
import time
import traceback
from collections import deque
from typing import Any

_KEPT = 100
_LONGEST = 4000  # characters of a text


class Notices(logging.Handler):
    """A handler of the log that keeps the last records. Any thread.

    logger   name of the logger whose records it keeps
    count    number of all records so far
    """

    def __init__(self, logger: str = "core") -> None:
        super().__init__(logging.WARNING)
        self._logger = logging.getLogger(logger)
        self.count = 0
        self._kept: deque[dict[str, Any]] = deque(maxlen=_KEPT)

    def attach(self) -> None:
        """Begin to keep records of the logger."""
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record. `logging` holds the lock of this handler."""
        try:
            text = record.getMessage()
            if record.exc_info and record.exc_info[1] is not None:
                text += "\n" + "".join(traceback.format_exception(*record.exc_info))
        except Exception:  # a record whose arguments do not fit its text
            text = str(record.msg)
        self.count += 1
        self._kept.append(
            {
                "at_ms": int((record.created or time.time()) * 1000),
                "level": record.levelname.lower(),
                "text": text[:_LONGEST],
                "place": f"{record.filename}:{record.lineno}",
            }
        )

    def listed(self) -> list[dict[str, Any]]:
        """Return the kept records, the latest first."""
        with self.lock:  # type: ignore[union-attr]  # a Handler has one
            return [*reversed(self._kept)]

    def close(self) -> None:
        """Keep no more records."""
        self._logger.removeHandler(self)
        super().close()
