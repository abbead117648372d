"""Answers that are held back until the next one, so that the server wakes once for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

_TOGETHER_NS = 200_000  # answers within this time are sent together
_PERIOD_S = 0.002  # an answer is held for at most two periods, even if the next execution is long
_QUIET = 50  # after this many periods without a held answer, the watching thread sleeps


class Held:
    """The messages that are held back. The caller of `add` and `take` holds the lock `sending`.

    messages   the held messages
    flush      sends them; a thread of this class calls it if no message was added for a while
    """

    def __init__(self, sending: Any, flush: Callable[[], None]):
        self.messages: list[bytes] = []
        self._sending = sending
        self._flush = flush
        self._since_ns = 0  # time.monotonic_ns of the first held message; main thread only
        self._count = 0  # number of messages that were ever held
        self._watched = False  # the thread checks the held messages
        self._closed = False
        self._wake: threading.Semaphore | None = None  # None before the thread has been started

    def may_wait(self, now_ns: int) -> bool:
        """Return whether one more message may be held. Not thread-safe: call from the main thread only."""
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
        """Remove and return all held messages, to be sent now."""
        messages = b"".join(self.messages)
        self.messages.clear()
        return messages

    def close(self) -> None:
        """Stop holding messages, drop those that are held, and end the thread."""
        self._closed = True
        self._flush = self.messages.clear  # breaks the reference cycle with the owner
        if self._wake is not None:
            self._wake.release()

    def _watch(self) -> None:
        """Flush messages that are held too long. Without a lock it may see a change one period late."""
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
