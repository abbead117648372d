"""Which of the decoded frames a request gets: each n-th, some per second, for how long, at which speed."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Generator

from backend_video.settings import Wishes
from backend_video.source import Seen, VideoSource
from backend_video.stop import Stop

_EARLY_NS = 2_000_000  # stamps of films are rounded, to a millisecond in Matroska


def selected(source: VideoSource, wishes: Wishes, stop: Stop) -> Generator[Seen, None, None]:
    """Return a generator of the frames of a source that the wishes ask for.

    `duration_s` ends it by the times of the frames, or once the source was waited for so long after its
    first frame. The notice of a frame that is left out goes to the next one.
    With `realtime`, each frame waits for its time. Raises what the source raises, and Stopped.
    """
    frames = source.frames()
    if wishes.every > 1 or wishes.rate or wishes.duration_s or wishes.realtime:
        return _chosen(frames, source, wishes, stop)
    return frames  # all of them


def _chosen(
    frames: Generator[Seen, None, None], source: VideoSource, wishes: Wishes, stop: Stop
) -> Generator[Seen, None, None]:
    grid = _Grid(wishes.rate) if wishes.rate else None
    most_s = wishes.duration_s or math.inf
    begin_ns = 0
    begin_s: float | None = None  # of waiting; the wait for the first frame does not count
    told = Told()
    with contextlib.closing(frames):
        for seen in frames:
            begin_s = source.waited_s if begin_s is None else begin_s
            if seen.pts_ns / 1e9 >= most_s or source.waited_s - begin_s >= most_s:
                return
            told.add(seen)
            if seen.index % wishes.every or (grid is not None and not grid.takes(seen.pts_ns)):
                continue
            told.give(seen)
            if wishes.realtime:
                begin_ns = begin_ns or time.monotonic_ns() - seen.pts_ns
                stop.wait((begin_ns + seen.pts_ns - time.monotonic_ns()) / 1e9)
            yield seen


class Told:
    """What befell frames that are not delivered. Not thread-safe."""

    def __init__(self) -> None:
        self._gap_ns = self._dropped = 0
        self._notices: list[str] = []

    def add(self, seen: Seen) -> None:
        """Keep what a frame tells."""
        self._gap_ns += seen.gap_ns
        self._dropped += seen.dropped
        if seen.notice:
            self._notices = [*self._notices[-7:], seen.notice]

    def give(self, seen: Seen, dropped: int = 0) -> None:
        """Let a frame tell what was kept, and that `dropped` more frames were left out. Keep nothing."""
        seen.gap_ns, seen.dropped = self._gap_ns, self._dropped + dropped
        seen.notice = "; ".join(self._notices)
        self._gap_ns = self._dropped = 0
        self._notices = []


class _Grid:
    """Chooses frames so that there are at most `rate` per second in the long run."""

    def __init__(self, rate: float):
        self._step_ns = 1e9 / rate
        self._due_ns = 0.0

    def takes(self, pts_ns: int) -> bool:
        step = self._step_ns
        if pts_ns < self._due_ns - min(_EARLY_NS, step / 4):
            return False
        self._due_ns = max(self._due_ns, pts_ns - step) + step
        return True
