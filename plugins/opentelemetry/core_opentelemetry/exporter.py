"""SpanExporter: a queue of spans, and the thread that sends them to a collector in batches.

Tracer ─► [SpanExporter] ─► Collector ─► a collector.  The event loop only puts spans into the queue.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from core.telemetry.tracing import Trace, TraceExporter
from core_opentelemetry.settings import ExportSettings
from core_opentelemetry.spans import Span, spans_of

if TYPE_CHECKING:
    from core_opentelemetry.collector import Collector

logger = logging.getLogger("core")


class SpanExporter(TraceExporter):
    """Queues and sends the spans of one process. Event loop only, except for `_serve` and what it calls.

    At most `queue_size` spans wait; further ones are dropped. The log has one line when spans are dropped or
    the collector fails, and one when that ends.

    settings     size of the queue and of batches, and the delay between batches
    destination  receives at most `batch_size` spans per call
    """

    takes_context = True

    def __init__(self, settings: ExportSettings, destination: Collector):
        self.shown = settings.shown
        self._settings = settings
        self._destination = destination
        self._queue: deque[Span] = deque()
        self._woken = threading.Event()  # a batch is full, or the exporter closes
        self._thread: threading.Thread | None = None
        self._closed = False
        self._dropped = 0  # since the queue was full
        self._sending = 0  # spans of the batch that is being sent
        self._lost = 0  # spans since the collector failed; the exporter's thread writes it

    def export(self, trace: Trace) -> None:
        """Add the spans of a finished trace to the queue; see `add`."""
        # The current offset: the wall clock may have been set since the server started.
        self.add(spans_of(trace, time.time_ns() - time.monotonic_ns()))

    def add(self, spans: list[Span]) -> None:
        """Add the spans of one request to the queue, and start the thread if it does not run yet.

        Drop them if they do not all fit, or after `close`. Of a request with more spans than the queue has
        places, an empty queue takes as many as fit.
        """
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
        # A failing collector empties the queue too: the problem is over when it accepts spans again.
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
            self._woken.set()

    async def close(self, timeout_s: float) -> None:
        """Let the thread send the waiting spans; after `timeout_s` seconds the rest is lost, and logged.

        Later spans are dropped. A second call, or one without a thread, does nothing.
        """
        self._closed = True
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._woken.set()
        # Not a thread of the loop's executor: the interpreter would wait for it without a time limit.
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
                len(self._queue) + self._sending,
                self._destination.where,
                timeout_s,
            )
            self._queue.clear()
        self._destination.stop()

    # the exporter's thread -------------------------------------------------

    def _serve(self) -> None:
        delay_s = self._settings.delay_ms / 1000
        while not self._closed:
            whole = self._woken.wait(delay_s)
            self._woken.clear()
            # After a full batch, send full batches only; the rest waits. After the delay, send all spans.
            least = self._settings.batch_size if whole and not self._closed else 1
            self._send(least)
        self._send(1)

    def _send(self, least: int) -> None:
        """Send batches, one after the other, while at least `least` spans wait. Those that fail are lost."""
        queue, most = self._queue, self._settings.batch_size
        while len(queue) >= least:
            batch = _taken(queue, most)
            self._sending = len(batch)
            try:
                failure = self._destination.send(batch)
            except Exception as error:
                logger.debug("spans cannot be sent", exc_info=True)
                failure = f"{type(error).__name__}: {error}"
            self._sending = 0
            self._log(failure, len(batch))

    def _log(self, failure: str | None, count: int) -> None:
        """Log an error if sending begins to fail, a line if it works again. Count the spans lost between.

        failure   reason why a batch of `count` spans was not sent; None if it was
        """
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
    """Remove the first spans of the queue, at most `most`, and return them; [] if it is empty.

    The event loop may clear the queue meanwhile.
    """
    batch: list[Span] = []
    with suppress(IndexError):
        while len(batch) < most:
            batch.append(queue.popleft())
    return batch


def _wait(
    thread: threading.Thread, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]
) -> None:
    thread.join()
    tell: Callable[[], None] = lambda: None if ended.done() else ended.set_result(None)  # noqa: E731
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(tell)
