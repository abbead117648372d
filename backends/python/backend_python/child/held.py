"""Answers that wait for the next, so that the server wakes once for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

_TOGETHER_NS = 200_000  # answers that come within it are sent together
_PERIOD_S = 0.002  # at most two of these is an answer held, however long the next execution takes
_QUIET = 50  # periods without a held answer, and the thread that looks after them sleeps


class Held:
    """Guarded by the lock of who sends, but for what says otherwise.

    messages   that are held
    flush      sends them; called on a thread of this class while an execution takes longer than
               others did
    """

    def __init__(self, sending: Any, flush: Callable[[], None]):
        self.messages: list[bytes] = []
        self._sending = sending
        self._flush = flush
        self._since_ns = 0  # time.monotonic_ns of the first; main thread
        self._count = 0  # of all that have been held
        self._watched = False  # the thread looks after them
        self._closed = False
        self._wake: threading.Semaphore | None = None  # None before the thread has been started

    def may_wait(self, now_ns: int) -> bool:
        """Whether one more may be held. Main thread."""
        if not self.messages:
            self._since_ns = now_ns
        return now_ns - self._since_ns < _TOGETHER_NS

    def add(self, message: bytes) -> None:
        self.messages.append(message)
        self._count += 1
        if not self._watched:
            self._watched = True
            if self._wake is None:
                self._wake = threading.Semaphore(0)
                threading.Thread(target=self._watch, name="held", daemon=True).start()
            self._wake.release()

    def take(self) -> bytes:
        """All of them, to be sent now."""
        messages = b"".join(self.messages)
        self.messages.clear()
        return messages

    def close(self) -> None:
        """Nothing will be held any more."""
        self._closed = True
        self._flush = self.messages.clear  # no circle with who has made this is left
        if self._wake is not None:
            self._wake.release()

    def _watch(self) -> None:
        """Look from time to time, without a lock: what changes meanwhile is seen the next time."""
        assert self._wake is not None
        while self._wake.acquire() and not self._closed:
            quiet = 0
            while (quiet < _QUIET and not self._closed) or self._stays_watched():
                before = self._count
                time.sleep(_PERIOD_S)
                quiet = quiet + 1 if self._count == before else 0
                if quiet and self.messages:
                    self._flush()

    def _stays_watched(self) -> bool:
        with self._sending:
            self._watched = bool(self.messages)
        self._flush()  # a destructor may have found the lock taken
        return self._watched
