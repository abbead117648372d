"""Patience: bounds the time for which a source sends, and gives no frame.

A source that sends a byte now and then is never silent, and would keep an instance for ever.
"""

from __future__ import annotations

import io
import socket
import time
from typing import Any

from core.errors import CoreError, unavailable

TIMES = 6  # of the timeout for one read


class Patience:
    """The time until the next frame of a source that is not of this machine. Use it on one thread.

    timeout_s   of one read
    waited_s    for which the source was waited for
    """

    def __init__(self, timeout_s: float):
        self.waited_s = 0.0
        self.timeout_s = timeout_s
        self._end = 0.0
        self.begin()

    def begin(self) -> None:
        """Wait for the next frame from now on."""
        self._end = time.monotonic() + TIMES * self.timeout_s

    def skip(self, seconds: float) -> None:
        """Leave out time without a connection to the source: `reconnect_s` bounds it."""
        self._end += seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    def check(self, shown: str) -> None:
        """Raise CoreError(UNAVAILABLE) if the time is over. `shown` is the name of the source."""
        if self.is_over:
            raise self.error(shown)

    def error(self, shown: str) -> CoreError:
        """Return the error of a source that gave no frame in time."""
        return unavailable(
            f"'{shown}' sends, but gave no frame for {TIMES * self.timeout_s:g} s, {TIMES} times the "
            "'timeout_s' of the model's config.pbtxt"
        )

    def next_read_s(self) -> float:
        """Return how long the next read may take. Raises TimeoutError if the time is over."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self.timeout_s)


class PatientFile(io.RawIOBase):
    """What a socket receives, as a file: http.client makes any number of reads of it for one line or block.

    file   of `connected`, without a buffer; it is closed with this one
    """

    def __init__(self, connected: socket.socket, file: io.RawIOBase, patience: Patience):
        self._socket = connected
        self._file = file
        self._patience = patience

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        """Receive once. Raises TimeoutError if this read, or all since the last frame, took too long."""
        self._socket.settimeout(self._patience.next_read_s())
        begin = time.monotonic()
        try:
            return self._file.readinto(buffer)
        finally:
            self._patience.waited_s += time.monotonic() - begin

    def close(self) -> None:
        self._file.close()
        super().close()
