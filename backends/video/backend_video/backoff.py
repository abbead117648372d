"""Backoff: the pauses between tries to reach a source again."""

from __future__ import annotations

import time

from backend_video.stop import Stop

FIRST_S = 0.1
LONGEST_S = 5.0


class Backoff:
    """Pauses that double from FIRST_S to LONGEST_S, until the time is over. Not thread-safe.

    tries   that `wait` has allowed
    """

    def __init__(self, seconds: float, stop: Stop):
        self.tries = 0
        self._stop = stop
        self._end = time.monotonic() + seconds
        self._pause = FIRST_S

    def wait(self) -> bool:
        """Sleep before the next try. Return False, at once, if the time is over. Raises Stopped."""
        left = self._end - time.monotonic()
        if left <= 0:
            return False
        self._stop.wait(min(self._pause, left))
        self._pause = min(2 * self._pause, LONGEST_S)
        self.tries += 1
        return True
