"""Newest: decodes on a thread of its own, and gives its reader the newest frame each time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator

from backend_video.selection import Told
from backend_video.source import Seen
from backend_video.stop import Stop


class Newest:
    """Lets a source run at its own speed. A frame that the reader has not taken makes way for the next one.

    frames   may raise; the reader gets the exception after the last frame
    stop     ends the thread
    """

    def __init__(self, frames: Generator[Seen, None, None], stop: Stop):
        self._frames = frames
        self._stop = stop
        self._lock = threading.Lock()
        # The reader acquires it to wait, the decoder releases it. A Condition makes a lock for each wait.
        self._news = threading.Lock()
        self._waiting: Seen | None = None
        self._told = Told()
        self._dropped = 0
        self._done = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="video decoder", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until a frame waits, or the source has ended."""
        while self._waiting is None and not self._done:
            self._news.acquire()

    def take(self) -> Seen | None:
        """Return the newest frame that was not taken, as soon as there is one; None after the last.

        Raises what the frames raise. Call it on one thread.
        """
        self.wait()
        with self._lock:
            seen, self._waiting = self._waiting, None
            if seen is None:
                if self._error is not None:
                    raise self._error
                return None
            self._told.give(seen, self._dropped)
            self._dropped = 0
            return seen

    def close(self) -> None:
        """End the thread. Sets `stop`."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            with contextlib.closing(self._frames):
                for seen in self._frames:
                    self._put(seen)
        except BaseException as raised:  # the reader raises it again
            error = raised
        self._error, self._done = error, True
        self._tell()

    def _put(self, seen: Seen) -> None:
        with self._lock:
            self._dropped += self._waiting is not None
            self._told.add(seen)
            self._waiting = seen
        self._tell()

    def _tell(self) -> None:
        if self._news.locked():
            self._news.release()
