"""Silence: the time without a frame of one request to a camera, and whether it is too long for it."""

from __future__ import annotations

import time

_SHORTEST_S = 2.0  # of patience
_TIMES = 3  # the time between two frames: the patience for a slow camera


class Silence:
    """The time since the last answered frame. Loop thread only.

    patience_s   seconds without a frame that are not yet too long
    """

    def __init__(self) -> None:
        self.patience_s = _SHORTEST_S
        self._between_ns = 0  # time between the last two frames
        self._since_ns = 0  # when the last frame was answered; 0 while none is awaited

    @property
    def is_too_long(self) -> bool:
        """Whether the next frame has been awaited for more than `patience_s`."""
        waited_s = (time.monotonic_ns() - self._since_ns) / 1e9
        return bool(self._since_ns) and waited_s > self.patience_s

    def begin(self) -> None:
        """Wait for the next frame from now on."""
        self._since_ns = time.monotonic_ns()

    def end(self, came_ns: int, gap_ns: int) -> int:
        """Return the nanoseconds without a frame before the one that came at `came_ns`.

        gap_ns   the output `gap` of that frame
        """
        silent_ns = came_ns - (self._since_ns or came_ns)
        self._since_ns = 0
        between_ns = silent_ns - gap_ns
        # One long pause does not make a slow camera: the shorter of the last two counts.
        self.patience_s = max(_SHORTEST_S, _TIMES * min(between_ns, self._between_ns) / 1e9)
        self._between_ns = between_ns
        return max(gap_ns, silent_ns)
