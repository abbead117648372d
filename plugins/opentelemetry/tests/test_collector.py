"""The data sent to a collector, and the log of OpenTelemetry's exporter meanwhile."""

import logging
import threading

import pytest
from core_opentelemetry.collector import Collector
from core_opentelemetry.settings import ExportSettings
from core_opentelemetry.spans import Span

from core.telemetry.tracing.context import SpanContext

LOGGER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


@pytest.fixture
def made(collector):
    destination = Collector(ExportSettings.of([("url", collector.url)], {}))
    yield destination
    destination.stop()


def span(error=""):
    parent = SpanContext(1, 2, "a=b,c=d")
    return Span("m", parent.child(), parent, 10, 30, [("X", 20)], {"n": 1, "t": "x"}, error)


def test_a_span_arrives_unchanged(made, collector):
    sent = span(error="too bad")

    assert made.send([sent]) is None

    (found,) = collector.named("m")
    assert (found.trace, found.parent) == (f"{1:032x}", f"{2:016x}")
    assert found.id == f"{sent.context.span_id:016x}"
    assert (found.state, found.status) == ("a=b,c=d", "too bad")
    assert (found.events, found.attributes) == (["X"], {"n": 1, "t": "x"})
    assert found.resource["service.name"] == "triton-inference-server"


def test_a_failure_is_returned_and_not_logged(made, collector, caplog):
    collector.status = 400

    failure = made.send([span()])

    assert "400" in failure
    assert caplog.records == []


def test_other_users_of_that_exporter_log_as_before(made, collector, caplog):
    threads = [threading.Thread(target=logging.getLogger(LOGGER).error, args=("of another",))]
    with made._complaints:
        for thread in threads:
            thread.start()
            thread.join()
    logging.getLogger(LOGGER).error("of this thread")

    assert [record.getMessage() for record in caplog.records] == ["of another", "of this thread"]
