"""Backlog: the answers that wait for one client. Pace: how fast a thread may give them.

A model that answers faster than its client reads would fill the memory. So who sends to a client
counts what waits in a Backlog, which holds the requests (`InferenceRequest.hold`) while it is full; and
who makes answers asks from time to time whether it may go on (`when_free`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from core.errors import CoreError, unavailable
from core.request import InferenceRequest

# So much may wait for a client before its requests are held; they go on when half of it has left.
MOST_ANSWERS = 1024
MOST_BYTES = 16 * 2**20

# A client that takes nothing for so long while its requests are held loses them: others may wait for
# the instance that waits for it.
STALLED_S = 60.0

# Of models that do not wait: the requests are given up, or the memory would be filled after all.
LIMIT_ANSWERS = 64 * MOST_ANSWERS
LIMIT_BYTES = 64 * MOST_BYTES

# A model asks whether it may go on with each so many answers or bytes, and waits before the next time.
EACH_ANSWERS = 64
EACH_BYTES = 4 * 2**20


class Backlog:
    """What waits for one client. Loop thread only.

    give_up   called, once, with the error for a client that does not read: forget what waits, cancel
              the requests

    Invariants:
    1. While it is full, every request in it is held, and a timer runs.
    2. It is full from MOST_ANSWERS or MOST_BYTES on, until half of both is left.
    """

    def __init__(self, give_up: Callable[[CoreError], None]):
        self._give_up = give_up
        self._requests: set[InferenceRequest] = set()
        self._answers = 0
        self._bytes = 0
        self._taken = 0  # answers since the beginning
        self._timer: asyncio.TimerHandle | None = None  # while it is full

    @property
    def full(self) -> bool:
        """Whether its requests are held."""
        return self._timer is not None

    def enter(self, request: InferenceRequest) -> None:
        """The answers to `request` will come here."""
        self._requests.add(request)
        if self.full:
            request.hold()

    def leave(self, request: InferenceRequest) -> None:
        """Its last answer has come, or it is not wanted any more."""
        self._requests.discard(request)

    def add(self, size: int) -> None:
        """An answer of `size` bytes waits."""
        self._answers += 1
        self._bytes += size
        if not self.full and (self._answers > MOST_ANSWERS or self._bytes > MOST_BYTES):
            self._watch()
            for request in self._requests:
                request.hold()
        if self._answers > LIMIT_ANSWERS or (self._bytes > LIMIT_BYTES and self._answers > 1):
            self._end(
                f"the client does not read: {self._answers} responses of {self._bytes} bytes wait for "
                f"it, at most {LIMIT_ANSWERS} responses of {LIMIT_BYTES} bytes may"
            )

    def take(self, size: int) -> None:
        """An answer of `size` bytes has been sent to the client, as far as that depends on us."""
        self._answers -= 1
        self._bytes -= size
        self._taken += 1
        if self.full and 2 * self._answers <= MOST_ANSWERS and 2 * self._bytes <= MOST_BYTES:
            self._free()

    def close(self) -> None:
        """Nobody sends to the client any more."""
        # Who is told often holds this one: a circle, and the requests in it.
        self._give_up = _nothing
        self._free()
        self._requests.clear()

    def _free(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            for request in list(self._requests):
                request.resume()

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(STALLED_S, self._look, self._taken)

    def _look(self, taken: int) -> None:
        if self._taken != taken:
            self._watch()
            return
        self._end(
            f"the client does not read: {self._answers} responses of {self._bytes} bytes wait for it, "
            f"and it took none for {STALLED_S:.0f} seconds"
        )

    def _end(self, text: str) -> None:
        self._answers = self._bytes = 0
        give_up, self._give_up = self._give_up, _nothing
        give_up(unavailable(text))


def _nothing(error: CoreError) -> None:
    """It has been told already."""


class Pace:
    """Lets a thread give answers to one request as fast as the client takes them. One thread.

    What it gives before it waits is on its way or waits in a Backlog: at most twice EACH_ANSWERS
    or EACH_BYTES more than that has room for.
    """

    def __init__(self, request: InferenceRequest, loop: asyncio.AbstractEventLoop):
        self._request = request
        self._loop = loop
        self._answers = 0  # since it asked
        self._bytes = 0
        self._free: threading.Semaphore | None = None  # released when the last question is answered

    def gave(self, size: int) -> None:
        """An answer of `size` bytes has been given; waits until there is room for the next.

        On a thread that runs an event loop it never waits.
        """
        self._answers += 1
        self._bytes += size
        if self._answers < EACH_ANSWERS and self._bytes < EACH_BYTES:
            return
        if asyncio._get_running_loop() is not None:
            return
        self._answers = self._bytes = 0
        if self._free is None:
            self._free = threading.Semaphore(0)
        else:
            self._free.acquire()
        # Behind the answers, which go to the loop in the same way.
        self._loop.call_soon_threadsafe(self._request.when_free, self._free.release)
