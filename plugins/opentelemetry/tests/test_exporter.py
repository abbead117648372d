"""The path of spans to a collector: limited, and without delay for requests."""

import asyncio
import logging
import threading

import pytest
from core_opentelemetry.exporter import SpanExporter
from core_opentelemetry.settings import ExportSettings
from core_opentelemetry.spans import Span

from core.telemetry.tracing.context import SpanContext

FOREVER_MS = 10**7


def spans(*names):
    return [Span(name, SpanContext(1, 1), None, 0, 0, [], {}) for name in names]


class Destination:
    """Stands for a Collector: `send` waits while the gate is closed, then keeps the names of the spans.

    failure   reason that `send` returns, or exception that it raises, instead; None for none
    """

    where = "the collector"

    def __init__(self):
        self.batches = []
        self.failure = None
        self.gate = threading.Event()
        self.gate.set()
        self.asked = threading.Event()
        self.stopped = False

    def send(self, batch):
        self.asked.set()
        assert self.gate.wait(60)
        if isinstance(self.failure, Exception):
            raise self.failure
        if self.failure is None:
            self.batches.append([span.name for span in batch])
        return self.failure

    def stop(self):
        self.stopped = True
        self.gate.set()


@pytest.fixture
async def exporter():
    made = []

    def make(**settings):
        destination = Destination()
        chosen = {"delay_ms": FOREVER_MS, **settings}
        found = SpanExporter(ExportSettings(**chosen), destination)
        made.append(found)
        return found, destination

    yield make
    for each in made:
        each._destination.gate.set()
        await each.close(5)


async def test_a_full_batch_leaves_at_once(exporter):
    found, destination = exporter(batch_size=2)

    found.add(spans("a", "b"))

    await asyncio.to_thread(destination.asked.wait, 60)
    await found.close(5)
    assert destination.batches == [["a", "b"]]


async def test_an_incomplete_batch_is_sent_after_the_delay(exporter):
    found, destination = exporter(delay_ms=1)

    found.add(spans("a"))

    assert await asyncio.to_thread(destination.asked.wait, 60)


async def test_the_end_sends_all_that_waits(exporter):
    found, destination = exporter(batch_size=2)
    destination.gate.clear()
    found.add(spans("a", "b"))
    await asyncio.to_thread(destination.asked.wait, 60)
    found.add(spans("c"))
    destination.gate.set()

    await found.close(5)

    assert destination.batches == [["a", "b"], ["c"]]
    assert destination.stopped


async def test_a_full_queue_drops_spans_and_logs_it_once(exporter, caplog):
    found, destination = exporter(queue_size=3, batch_size=3)
    destination.gate.clear()
    found.add(spans("a", "b", "c"))
    await asyncio.to_thread(destination.asked.wait, 60)  # they are under way

    with caplog.at_level(logging.WARNING, "core"):
        for name in "defgh":
            found.add(spans(name + "1", name + "2"))
    destination.gate.set()
    await found.close(5)

    assert destination.batches == [["a", "b", "c"], ["d1", "d2"]]
    assert caplog.text.count("queue is full - dropping span") == 1


async def test_a_queue_with_free_space_again_logs_the_dropped_spans(exporter, caplog):
    found, destination = exporter(queue_size=2, batch_size=2)
    destination.gate.clear()
    with caplog.at_level(logging.INFO, "core"):
        found.add(spans("a", "b"))
        await asyncio.to_thread(destination.asked.wait, 60)
        for _ in range(3):
            found.add(spans("c", "d"))
        destination.gate.set()
        while found._queue:
            await asyncio.sleep(0)
        found.add(spans("e", "f"))
        found.add([])

    assert caplog.text.count("the queue of spans has room again; 4 were dropped") == 1


async def test_a_queue_that_a_failing_collector_empties_is_not_logged_again(exporter, caplog):
    found, destination = exporter(queue_size=2, batch_size=2)
    destination.failure = "away"
    with caplog.at_level(logging.INFO, "core"):
        for _ in range(3):
            destination.gate.clear()
            destination.asked.clear()
            found.add(spans("a", "b"))
            await asyncio.to_thread(destination.asked.wait, 60)
            found.add(spans("c", "d"))
            found.add(spans("e", "f"))
            lost = found._lost
            destination.gate.set()
            while found._lost < lost + 4:
                await asyncio.sleep(0)

    assert caplog.text.count("queue is full") == 1
    assert "room again" not in caplog.text


async def test_a_request_that_never_fits_is_cut(exporter):
    found, destination = exporter(queue_size=2, batch_size=2)

    found.add(spans("a", "b", "c"))
    await found.close(5)

    assert destination.batches == [["a", "b"]]


@pytest.mark.parametrize("failure", ["connection refused", RuntimeError("connection refused")])
async def test_a_failing_collector_is_logged_once_and_when_it_works_again(
    exporter, caplog, failure
):
    found, destination = exporter(batch_size=1)
    destination.failure = failure

    with caplog.at_level(logging.INFO, "core"):
        found.add(spans("a", "b", "c"))
        while found._lost < 3:
            await asyncio.sleep(0)
        destination.failure = None
        found.add(spans("d"))
        await found.close(5)

    assert caplog.text.count("spans cannot be sent to the collector") == 1
    assert caplog.text.count("connection refused") == 1
    assert caplog.text.count("spans are sent to the collector again; 3 were lost") == 1
    assert destination.batches == [["d"]]


async def test_a_collector_that_hangs_delays_the_end_by_a_bounded_time(exporter, caplog):
    found, destination = exporter(batch_size=1, queue_size=9)
    destination.gate.clear()
    found.add(spans("a", "b", "c"))
    await asyncio.to_thread(destination.asked.wait, 60)

    with caplog.at_level(logging.WARNING, "core"):
        await found.close(timeout_s=0.01)

    assert destination.stopped
    assert "3 spans are lost: the collector did not take them within 0.01 s" in caplog.text


async def test_nothing_is_taken_after_the_end(exporter):
    found, destination = exporter(batch_size=1)
    await found.close(5)

    found.add(spans("a"))
    await found.close(5)

    assert destination.batches == []
