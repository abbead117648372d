"""Backlog: counts the responses that wait for one client. Pace: slows a thread down to the client's speed.

A model that responds faster than its client reads would fill the memory. The sender therefore counts waiting
responses in a Backlog, which pauses the requests (`InferenceRequest.pause`) while it is full. The producer
checks from time to time whether it may continue (`when_free`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from core.errors import CoreError, unavailable
from core.request import InferenceRequest

# Limits above which requests are paused. They resume when both counts have fallen to half.
MOST_ANSWERS = 1024
MOST_BYTES = 16 * 2**20

# Requests of a client that reads nothing for this time while they are paused are cancelled, since other
# requests may wait for the same instance.
STALLED_S = 60.0

# Limits for models that ignore a pause: above them the requests are cancelled, to protect the memory.
LIMIT_ANSWERS = 64 * MOST_ANSWERS
LIMIT_BYTES = 64 * MOST_BYTES

# A thread checks whether it may continue after this many responses or bytes.
EACH_ANSWERS = 64
EACH_BYTES = 4 * 2**20


class Backlog:
    """Counter of the responses that wait for one client. Not thread-safe: call from the event loop only.

    give_up   called once with the error if the client does not read; it drops the responses and cancels the
              requests

    Invariants:
    1. While it is full, every request in it is paused, and a timer runs.
    2. It is full once over MOST_ANSWERS or MOST_BYTES wait, until both counts have fallen to half.
    """

    def __init__(self, give_up: Callable[[CoreError], None]):
        self._give_up = give_up
        self._requests: set[InferenceRequest] = set()
        self._answers = 0
        self._bytes = 0
        self._taken = 0  # responses sent since the beginning
        self._timer: asyncio.TimerHandle | None = None  # while it is full

    @property
    def full(self) -> bool:
        """Return whether its requests are paused."""
        return self._timer is not None

    def enter(self, request: InferenceRequest) -> None:
        """Add a request whose responses will be counted here; pause it if this is full."""
        self._requests.add(request)
        if self.full:
            request.pause()

    def leave(self, request: InferenceRequest) -> None:
        """Remove a request that has ended."""
        self._requests.discard(request)

    def add(self, size: int, answers: int = 1) -> None:
        """Count responses of `size` bytes that wait. Pause the requests, or give up, if too much waits."""
        self._answers += answers
        self._bytes += size
        if self._timer is None and (self._answers > MOST_ANSWERS or self._bytes > MOST_BYTES):
            self._start_timer()
            for request in self._requests:
                request.pause()
        if self._answers > LIMIT_ANSWERS or (self._bytes > LIMIT_BYTES and self._answers > 1):
            self._end(
                f"the client does not read: {self._answers} responses of {self._bytes} bytes wait for "
                f"it, at most {LIMIT_ANSWERS} responses of {LIMIT_BYTES} bytes may"
            )

    def take(self, size: int, answers: int = 1) -> None:
        """Uncount responses of `size` bytes that were sent. Resume the requests at half of both limits."""
        self._answers -= answers
        self._bytes -= size
        self._taken += answers
        if self.full and 2 * self._answers <= MOST_ANSWERS and 2 * self._bytes <= MOST_BYTES:
            self._free()

    def close(self) -> None:
        """Resume all requests and drop all references, because nothing is sent to the client any more."""
        # The callback often refers to this object; drop it to break the cycle.
        self._give_up = _nothing
        self._free()
        self._requests.clear()

    def _free(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            for request in list(self._requests):
                request.resume()

    def _start_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(STALLED_S, self._check_stalled, self._taken)

    def _check_stalled(self, taken: int) -> None:
        if self._taken != taken:
            self._start_timer()
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
    """Stand in for `give_up` after it was called."""


class Pace:
    """Lets a thread respond to one request as fast as the client reads. Use it on one thread only.

    At most twice EACH_ANSWERS or EACH_BYTES exceed the limit of the Backlog before the thread waits.
    """

    def __init__(self, request: InferenceRequest, loop: asyncio.AbstractEventLoop):
        self._request = request
        self._loop = loop
        self._answers = 0  # since the last check
        self._bytes = 0
        self._free: threading.Semaphore | None = None  # released when the last check has succeeded

    def gave(self, size: int) -> None:
        """Count a response of `size` bytes. After each EACH_ANSWERS or EACH_BYTES, start a check whether the
        client can take more, and wait for the check before. On a thread that runs an event loop, only count.
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
        # Through the loop, behind the responses that wait there.
        self._loop.call_soon_threadsafe(self._request.when_free, self._free.release)
