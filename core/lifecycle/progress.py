"""Progress: the current step of a load, for clients and for the log.

ModelVersion ─► [Progress] ─► ManagedModel.progress ─► the error of a request, the repository index.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("core")

LOG_EVERY_S = 10.0  # between two log lines about one load

WAITS = "waits for its turn"
FETCHES = "fetches its files"
OPENS_BACKEND = "opens its backend"
COMPLETES = "completes its configuration"
LOADS = "loads its files"
OPENS_INSTANCES = "opens its instances"
LOADED = "is loaded"  # and waits for the other versions of its model


class Progress:
    """The steps of one load. Not thread-safe: call from the event loop only.

    step    the current step: one of the constants above
    start   when the load was asked for (time.monotonic())
    """

    def __init__(self) -> None:
        self.step = WAITS
        self.start = time.monotonic()

    @contextmanager
    def logged(self, what: str, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Log a line every LOG_EVERY_S seconds until the block ends, which encloses a load.

        what   the model and its version, in the form of other log lines about the load
        """
        start = time.monotonic()
        timers: list[asyncio.TimerHandle] = []  # only the next one

        def wait() -> None:
            timers[:] = [loop.call_later(LOG_EVERY_S, tell)]

        def tell() -> None:
            logger.info("still loading: %s, %s: it %s", what, seconds(start), self.step)
            wait()

        wait()
        try:
            yield
        finally:
            timers[0].cancel()


def seconds(start: float) -> str:
    """Return the time since `start` (of time.monotonic()) as text: "12 s"."""
    return f"{time.monotonic() - start:.0f} s"
