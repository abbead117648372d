"""Clock: the time stamps of a source ─► nanoseconds since its first frame, also over lost connections."""

from __future__ import annotations

from av.video.frame import VideoFrame

_NS = 1_000_000_000


class Clock:
    """Times of the frames of one request. They never go back. Not thread-safe.

    last_ns   of the last frame; -1 before the first
    """

    def __init__(self) -> None:
        self.last_ns = -1
        self._shift: int | None = None  # added to the source's own times; None at a new connection
        self._gap_ns = 0
        # Duration of the frames since the last stamp that was later than all before it.
        self._held_ns = 0

    def reconnected(self, gap_ns: int) -> None:
        """Let the next frame be `gap_ns` after the last one, whatever its time stamp says."""
        self._shift = None
        self._gap_ns = gap_ns

    def time_of(self, frame: VideoFrame, step_ns: int) -> int:
        """Return the time of the next frame.

        step_ns   time between frames: for frames without a stamp, and where stamps begin anew
        """
        stamp, time_base = frame.pts, frame.time_base
        if stamp is None or time_base is None:
            found = self._after(self._gap_ns or step_ns)
        else:
            own = stamp * time_base.numerator * _NS // time_base.denominator
            if self._shift is None:
                self._shift = self._after(self._gap_ns) - own
            found = own + self._shift
            if found > self.last_ns:
                self._held_ns = 0
            elif self.last_ns - found < _NS and self._held_ns < _NS:
                # The stamp repeats or is out of order; the next one is right.
                found = self._after(1)
                self._held_ns += step_ns
            else:
                # The stamps begin anew, or stand still.
                found = self._after(step_ns)
                self._shift = found - own
        self.last_ns = found
        self._gap_ns = 0
        return found

    def _after(self, ns: int) -> int:
        return 0 if self.last_ns < 0 else self.last_ns + max(1, ns)
