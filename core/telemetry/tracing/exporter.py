"""SpanExporter: spans on their way to a collector, sent in batches by a thread of their own.

Tracer ─► [SpanExporter] ─► otlp.Collector ─► a collector.  The loop only puts spans into a queue.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from core.telemetry.tracing.export_settings import ExportSettings
from core.telemetry.tracing.spans import Span

logger = logging.getLogger("core")

FLUSH_S = 5.0  # what a collector gets for the last spans when the server ends


class Destination(Protocol):
    """Where spans go. Calls come from one thread, one at a time, but for `stop`."""

    where: str  # for the log

    def send(self, spans: Sequence[Span]) -> str | None:
        """Send them and wait for the answer; why it failed, None if it did not. May take seconds."""

    def stop(self) -> None:
        """End a `send` that waits to try again. Any thread."""


class SpanExporter:
    """The spans of one process. Loop thread, but for `_serve` and below.

    At most `queue_size` spans wait; what comes more is dropped. That, and a collector that takes none, is
    said in the log once, and again only after it was over.

    settings     how many spans wait, and how long
    destination  gets them, at most `batch_size` at once
    """

    def __init__(self, settings: ExportSettings, destination: Destination):
        self._settings = settings
        self._destination = destination
        self._queue: deque[Span] = deque()
        self._stirred = threading.Event()  # a batch is full, or no more will come
        self._thread: threading.Thread | None = None
        self._closed = False
        self._dropped = 0  # since the queue was full
        self._under_way = 0  # spans of a batch that is being sent
        self._lost = 0  # spans since the collector failed; the exporter's thread writes it

    def add(self, spans: list[Span]) -> None:
        """Send them some time: those of one request, if there is room for all of them."""
        if self._closed:
            return
        queue, most = self._queue, self._settings.queue_size
        if len(queue) + len(spans) > most and queue:
            if not self._dropped:
                logger.warning(
                    "BatchSpanProcessor queue is full - dropping span. %d spans wait for %s; "
                    "bsp_max_queue_size of --trace-config=opentelemetry says how many may",
                    len(queue),
                    self._destination.where,
                )
            self._dropped += len(spans)
            return
        # A collector that fails empties the queue too: that is not over before it takes what it gets.
        if self._dropped and not queue and not self._lost:
            logger.info("the queue of spans has room again; %d were dropped", self._dropped)
            self._dropped = 0
        queue.extend(spans[:most])
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._serve, name="core-span-exporter", daemon=True
            )
            self._thread.start()
        if len(queue) >= self._settings.batch_size:
            self._stirred.set()

    async def close(self, timeout_s: float = FLUSH_S) -> None:
        """Send what waits, for at most `timeout_s`; what comes later is lost. A second call does nothing."""
        self._closed = True
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stirred.set()
        # Not a thread of the loop's executor: the interpreter would wait for it without a bound.
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        threading.Thread(
            target=_wait,
            args=(thread, ended.get_loop(), ended),
            name="core-span-flush",
            daemon=True,
        ).start()
        try:
            await asyncio.wait_for(ended, timeout_s)
        except asyncio.TimeoutError:
            logger.warning(
                "%d spans are lost: %s did not take them within %g s of the server's end",
                len(self._queue) + self._under_way,
                self._destination.where,
                timeout_s,
            )
            self._queue.clear()
        self._destination.stop()

    # the exporter's thread -------------------------------------------------

    def _serve(self) -> None:
        delay_s = self._settings.delay_ms / 1000
        while not self._closed:
            whole = self._stirred.wait(delay_s)
            self._stirred.clear()
            # Woken by a full batch, it leaves the rest for the next; else it sends what there is.
            least = self._settings.batch_size if whole and not self._closed else 1
            self._send(least)
        self._send(1)

    def _send(self, least: int) -> None:
        """Send batches while so many spans wait."""
        queue, most = self._queue, self._settings.batch_size
        while len(queue) >= least:
            batch = _taken(queue, most)
            self._under_way = len(batch)
            try:
                failure = self._destination.send(batch)
            except Exception as error:
                logger.debug("spans cannot be sent", exc_info=True)
                failure = f"{type(error).__name__}: {error}"
            self._under_way = 0
            self._tell(failure, len(batch))

    def _tell(self, failure: str | None, count: int) -> None:
        """Say in the log when sending begins to fail, and when it does no more."""
        where = self._destination.where
        if failure is not None:
            if not self._lost:
                logger.error(
                    "spans cannot be sent to %s and are lost until that is mended: %s",
                    where,
                    failure,
                )
            self._lost += count
        elif self._lost:
            logger.info("spans are sent to %s again; %d were lost", where, self._lost)
            self._lost = 0


def _taken(queue: deque[Span], most: int) -> list[Span]:
    """The first of them, at most so many; the loop may clear the queue meanwhile."""
    batch: list[Span] = []
    try:
        while len(batch) < most:
            batch.append(queue.popleft())
    except IndexError:
        pass
    return batch


def _wait(
    thread: threading.Thread, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]
) -> None:
    thread.join()
    tell: Callable[[], None] = lambda: None if ended.done() else ended.set_result(None)  # noqa: E731
    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        pass  # the loop is closed: nobody waits any more
