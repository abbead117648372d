"""Tracer: the settings of the server and of its models, as they change."""

import asyncio
import json
import logging
import sys

import pytest

from core.errors import CoreError, Kind, invalid
from core.options import Options
from core.request import InferenceRequest
from core.response import Reply
from core.telemetry.tracing import Trace, Tracer
from core.telemetry.tracing.context import SpanContext

ON = [("level", "TIMESTAMPS"), ("rate", "1")]
PARENT = f"00-{0xAB:032x}-{0xCD:016x}-00"


@pytest.fixture
def tracer(tmp_path):
    def make(*settings, file=True, exporter=None):
        config = {"": list(settings)}
        if file:
            config["triton"] = [("file", str(tmp_path / "trace"))]
        return Tracer(Options.defaults(trace_config=config), exporter=exporter)

    return make


class Exported:
    """An exporter that keeps its spans."""

    def __init__(self):
        self.spans = []
        self.closed = None

    def add(self, spans):
        self.spans += spans

    async def close(self, timeout_s):
        self.closed = timeout_s


@pytest.fixture
def otel(tracer):
    """A tracer in mode opentelemetry, and what it exports."""

    def make(*settings):
        exported = Exported()
        made = tracer(("mode", "opentelemetry"), *settings, file=False, exporter=exported)
        return made, exported

    return make


def answered(request):
    reply = Reply(request)
    reply.send(None, True)
    return reply


async def traced(tracer, model="m", context=None):
    """Whether the next request of a model is traced; it is answered at once."""
    request = InferenceRequest(model, {}, trace=context)
    if tracer.on:
        tracer.infer(request, model, 1, answered)
    await asyncio.sleep(0)  # a trace leaves in the next turn of the loop
    return request.trace is not None


def test_a_server_that_traces_nothing_is_off(tracer):
    assert not tracer().on
    assert not tracer(*ON, file=False).on
    assert tracer(*ON).on


async def test_changes_turn_it_on_and_off(tracer):
    found = tracer()

    found.change({"trace_level": ["TIMESTAMPS"], "trace_rate": "1"})
    assert await traced(found)

    found.change({"trace_level": ["OFF"]})
    assert not found.on


def test_a_refused_change_changes_nothing(tracer):
    found = tracer()
    before = found.settings()

    with pytest.raises(CoreError):
        found.change({"trace_rate": "5", "trace_count": "some"})

    assert found.settings() == before


def test_models_follow_the_server_but_for_their_own_settings(tracer):
    found = tracer()

    found.change({"trace_rate": "3"}, "m")
    found.change({"trace_rate": "7", "log_frequency": "2"})

    assert (found.settings("m")["trace_rate"], found.settings("m")["log_frequency"]) == ("3", "2")
    assert found.settings("other")["trace_rate"] == "7"


def test_null_clears_a_setting(tracer):
    found = tracer(("rate", "50"))
    found.change({"trace_rate": "7"})
    found.change({"trace_rate": "3"}, "m")

    assert found.change({"trace_rate": None}, "m")["trace_rate"] == "7"
    assert found.change({"trace_rate": None})["trace_rate"] == "50"


async def test_one_model_may_be_traced_alone(tracer):
    found = tracer()

    found.change({"trace_level": ["TIMESTAMPS"], "trace_rate": "1"}, "m")

    assert await traced(found, "m")
    assert not await traced(found, "other")


async def test_the_last_of_the_count_turns_it_off(tracer):
    found = tracer(*ON, ("count", "2"))

    assert await traced(found) and await traced(found)
    assert not found.on
    assert found.settings()["trace_count"] == "0"


async def test_a_change_starts_the_count_again(tracer):
    found = tracer(*ON, ("count", "1"))
    await traced(found)

    found.change({"trace_level": ["TENSORS"]})

    assert await traced(found)
    assert not await traced(found)


async def test_a_count_of_a_client_goes_on_when_something_else_changes(tracer):
    found = tracer(*ON)
    found.change({"trace_count": "2"})
    found.change({"trace_count": "3"}, "m")
    await traced(found)
    await traced(found, "other")

    found.change({"log_frequency": "5"})

    assert found.settings()["trace_count"] == "1"
    assert found.settings("m")["trace_count"] == "2"


async def test_a_change_of_the_server_leaves_the_count_of_a_model_alone(tracer):
    found = tracer(*ON)
    found.change({"trace_count": "1"}, "m")
    await traced(found)

    found.change({"trace_count": "9"})

    assert not await traced(found)
    assert await traced(found, "other")


async def test_it_stays_on_until_the_last_trace_has_left(tracer):
    found = tracer(*ON)
    replies = []

    def waiting(request):
        replies.append(Reply(request))
        return replies[-1]

    found.infer(InferenceRequest("m", {}), "m", 1, waiting)
    found.change({"trace_level": ["OFF"]})
    assert found.on

    replies[0].send(None, True)
    await asyncio.sleep(0)
    assert not found.on


async def test_a_request_that_brings_a_trace_is_its_child_and_not_counted(tracer):
    found = tracer(*ON, ("count", "1"))
    first, second = InferenceRequest("m", {}), InferenceRequest("n", {})
    first_reply, second_reply = Reply(first), Reply(second)
    found.infer(first, "m", 1, lambda request: first_reply)
    second.trace = first.trace

    found.infer(second, "n", 1, lambda request: second_reply)

    assert second.trace is not first.trace
    assert second.trace.parent_id == first.trace.id


@pytest.mark.parametrize(
    "settings,text",
    [
        (ON, "no trace is written"),
        (
            [("mode", "opentelemetry"), ("level", "TENSORS")],
            "Tensor level tracing is not supported by the mode: opentelemetry",
        ),
    ],
)
def test_settings_without_traces_are_said_in_the_log(tracer, caplog, settings, text):
    with caplog.at_level(logging.WARNING, "core"):
        tracer(*settings, file=False, exporter=Exported())

    assert caplog.text.count(text) == 1


def test_a_change_without_a_trace_file_is_refused(tracer):
    found = tracer(file=False)

    with pytest.raises(CoreError) as caught:
        found.change({"trace_level": ["TIMESTAMPS"]}, "m")

    assert caught.value.message.endswith(":trace file name is not given")
    assert found.settings("m")["trace_level"] == ["OFF"]


def test_a_rate_of_zero_is_refused_unless_nothing_is_traced(tracer):
    found = tracer(*ON)

    with pytest.raises(CoreError):
        found.change({"trace_rate": "0"})

    assert found.change({"trace_rate": "0", "trace_level": ["OFF"]})["trace_rate"] == "0"


# mode opentelemetry --------------------------------------------------------


async def test_a_traced_request_becomes_spans(otel):
    found, exported = otel(*ON)

    assert await traced(found)

    assert [span.name for span in exported.spans] == ["m", "InferRequest"]


async def test_a_context_makes_a_request_traced_whatever_rate_and_count_say(otel):
    found, exported = otel(("level", "TIMESTAMPS"), ("rate", "0"), ("count", "0"))

    assert found.on and found.takes_context
    assert not await traced(found)
    assert await traced(found, context=found.context(PARENT, ["a=b", "c=d"]))

    root = exported.spans[-1]
    assert root.parent == SpanContext(0xAB, 0xCD, "a=b,c=d")


async def test_requests_with_a_context_are_counted_with_the_others(otel):
    found, _ = otel(("level", "TIMESTAMPS"), ("rate", "2"), ("count", "1"))

    assert await traced(found, context=found.context(PARENT, []))
    assert await traced(found)
    assert not await traced(found) and not await traced(found)
    assert found.settings()["trace_count"] == "0"


async def test_a_context_changes_nothing_where_nothing_is_traced(otel):
    found, exported = otel(("level", "TIMESTAMPS"), ("rate", "0"))
    found.change({"trace_level": ["OFF"]}, "m")

    assert not await traced(found, context=found.context(PARENT, []))
    assert exported.spans == []


def test_what_is_no_context_is_none(otel, tracer):
    found, _ = otel(*ON)

    assert found.context("00-1-2-01", []) is None
    assert found.context(None, ["a=b"]) is None
    assert tracer(*ON).context(PARENT, []) is None  # mode triton has none


async def test_the_context_for_models_is_that_of_their_span(otel):
    found, exported = otel(*ON)
    carriers = []

    def execute(request):
        carriers.append(request.trace.carrier())
        return answered(request)

    found.infer(InferenceRequest("m", {}), "m", 1, execute)
    await asyncio.sleep(0)

    (carrier,) = carriers
    assert json.loads(carrier) == {"traceparent": exported.spans[0].context.traceparent}


def test_in_mode_triton_there_is_no_context_for_models(tracer):
    assert Trace(1, "m", 1, "", ("TIMESTAMPS",)).carrier() is None


async def test_an_error_is_in_the_spans(otel):
    found, exported = otel(*ON)

    def refuse(request):
        raise invalid("no such input")

    with pytest.raises(CoreError):
        found.infer(InferenceRequest("m", {}), "m", 1, refuse)
    await asyncio.sleep(0)

    assert {span.name: span.error for span in exported.spans} == {
        "m": "no such input",
        "InferRequest": "no such input",
    }


async def test_spans_keep_no_tensors(otel):
    found, exported = otel(("level", "TENSORS"), ("rate", "1"))

    assert await traced(found)

    assert [(span.name, span.events) for span in exported.spans] == [("InferRequest", [])]


@pytest.mark.parametrize("given_s,found_s", [(-3, 1), (2, 2), (30, 5)])
async def test_the_last_spans_get_a_bounded_time(otel, given_s, found_s):
    found, exported = otel(*ON)

    await found.close(given_s)

    assert exported.closed == found_s


def test_without_its_packages_the_mode_is_refused(tracer, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)

    with pytest.raises(CoreError) as caught:
        tracer(("mode", "opentelemetry"), file=False)

    assert caught.value.kind is Kind.INVALID
    assert "try: pip install core[opentelemetry]" in caught.value.message
