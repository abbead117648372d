"""NewestStreams: the open streams of one method, at most a number of them; old ones end for new ones.

So a client that opens very many streams locks out the others for LEAST_S at most. Younger streams do not end:
with more honest clients than places, each would open its stream again at once, and end that of another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import Exhausted

LEAST_S = 60.0  # for which a stream is open before it ends for a newer one
_RETRY_S = 1.0


class NewestStreams:
    """The open streams of one method. Not thread-safe: call from the event loop only.

    most   streams that may be open
    what   they are, in the error of one that ends, such as "streams of load reports"
    """

    def __init__(self, most: int, what: str):
        self._most = most
        self._what = what
        self._open: dict[NewestStream, float] = {}  # and when they began; the oldest one first

    @contextmanager
    def opened(self) -> Iterator[NewestStream]:
        """Count a stream in the context; end the oldest one if there are too many.

        Raises CoreError(EXHAUSTED) if there are too many, and all are younger than LEAST_S. Enter it after
        the first message of the client: a stream without one must not end that of another.
        """
        if len(self._open) >= self._most:
            self._end_oldest()
        stream = NewestStream()
        self._open[stream] = time.monotonic()
        try:
            yield stream
        finally:
            self._open.pop(stream, None)

    def _end_oldest(self) -> None:
        oldest, begun = next(iter(self._open.items()))
        if time.monotonic() - begun < LEAST_S:
            raise Exhausted(
                f"at most {self._most} {self._what} may be open, and as many are; open it again later",
                retry_after_s=LEAST_S,
            )
        del self._open[oldest]
        oldest.end(
            Exhausted(
                f"this stream ends for a newer one: at most {self._most} {self._what} may be open; "
                "open it again",
                retry_after_s=_RETRY_S,
            )
        )


class NewestStream:
    """One open stream."""

    def __init__(self) -> None:
        self._ended: asyncio.Future[Exhausted] = asyncio.get_running_loop().create_future()

    def end(self, error: Exhausted) -> None:
        """End the stream: `sleep` raises the error. Call it once."""
        self._ended.set_result(error)

    async def sleep(self, seconds: float) -> None:
        """Sleep. Raises CoreError(EXHAUSTED) as soon as the stream has to end for a newer one."""
        await asyncio.wait([self._ended], timeout=seconds)
        if self._ended.done():
            raise self._ended.result()
