"""Tracer: the settings of the server and of its models, as they change."""

import asyncio
import json
import logging
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import core
from core import plugins
from core.control.settings import open_exporter
from core.errors import CoreError, Kind, invalid
from core.options import Options
from core.request import InferenceRequest
from core.response import Reply
from core.telemetry.tracing import Trace, TraceExporter, Tracer
from core.telemetry.tracing.context import SpanContext
from core.tensor import Tensor

ON = [("level", "TIMESTAMPS"), ("rate", "1")]
PARENT = f"00-{0xAB:032x}-{0xCD:016x}-00"


@pytest.fixture
def tracer(tmp_path):
    def make(*settings, file=True, **modes):
        config = {"": list(settings), **modes}
        if file:
            config["triton"] = [("file", str(tmp_path / "trace"))]
        return new(config)

    return make


def new(config):
    """A tracer as a server makes it."""
    options = Options.defaults(trace_config=config)
    return Tracer(options, exporter=open_exporter(options))


class Exporter(TraceExporter):
    """Keeps its traces."""

    shown = {"url": "http://there"}

    def __init__(self, takes_context=True, takes_tensors=False):
        self.takes_context = takes_context
        self.takes_tensors = takes_tensors
        self.traces = []
        self.closed = None

    def export(self, trace):
        self.traces.append(trace)

    async def close(self, timeout_s):
        self.closed = timeout_s


@pytest.fixture
def offer():
    """Register a plugin with an exporter for a mode; return a list of the settings that it gets."""
    registered = []

    def register(mode, exporter):
        given = []

        def open_it(mode, settings, options):
            assert dict(options.trace_config[""])
            if mode != of_plugin:
                return None
            given.append(settings)
            return exporter

        of_plugin = mode
        plugin = SimpleNamespace(core_open_trace_exporter=core.hookimpl(open_it))
        plugins.hooks().register(plugin, f"test of {mode}")
        registered.append(plugin)
        return given

    yield register
    for plugin in registered:
        plugins.hooks().unregister(plugin)


@pytest.fixture
def exporting(tracer, offer):
    """Make a tracer in the mode `kept` of a plugin; return it and its exporter."""

    def make(*settings, **kind):
        exporter = Exporter(**kind)
        offer("kept", exporter)
        return tracer(("mode", "kept"), *settings, file=False), exporter

    return make


def answered(request):
    reply = Reply(request)
    reply.send(None, True)
    return reply


async def traced(tracer, model="m", context=None):
    """Return whether the next request of a model is traced; it is answered at once."""
    request = InferenceRequest(model, {}, trace=context)
    if tracer.on:
        tracer.infer(request, model, 1, answered)
    await asyncio.sleep(0)  # a trace leaves in the next turn of the loop
    return request.trace is not None


def test_a_server_without_tracing_is_off(tracer):
    assert not tracer().on
    assert not tracer(*ON, file=False).on
    assert tracer(*ON).on


async def test_changes_turn_it_on_and_off(tracer):
    found = tracer()

    found.change({"trace_level": ["TIMESTAMPS"], "trace_rate": "1"})
    assert await traced(found)

    found.change({"trace_level": ["OFF"]})
    assert not found.on


def test_a_refused_change_has_no_effect(tracer):
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


async def test_a_count_of_a_client_continues_when_another_setting_changes(tracer):
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


def test_a_level_without_a_trace_file_is_a_warning(tracer, caplog):
    with caplog.at_level(logging.WARNING, "core"):
        tracer(*ON, file=False)

    assert caplog.text.count("no trace is written") == 1


@pytest.mark.parametrize("takes_tensors,warnings", [(False, 1), (True, 0)])
def test_tensors_that_an_exporter_does_not_take_are_a_warning(
    exporting, caplog, takes_tensors, warnings
):
    with caplog.at_level(logging.WARNING, "core"):
        exporting(("level", "TENSORS"), takes_tensors=takes_tensors)

    text = "Tensor level tracing is not supported by the mode: kept"
    assert caplog.text.count(text) == warnings


def test_a_change_without_a_trace_file_is_refused(tracer):
    found = tracer(file=False)

    with pytest.raises(CoreError) as caught:
        found.change({"trace_level": ["TIMESTAMPS"]}, "m")

    assert caught.value.message.endswith(":trace file name is not given")
    assert found.settings("m")["trace_level"] == ["OFF"]


def test_a_rate_of_zero_is_refused_unless_tracing_is_off(tracer):
    found = tracer(*ON)

    with pytest.raises(CoreError):
        found.change({"trace_rate": "0"})

    assert found.change({"trace_rate": "0", "trace_level": ["OFF"]})["trace_rate"] == "0"


# exporters ------------------------------------------------------------------


async def test_a_traced_request_goes_to_the_exporter(exporting):
    found, exporter = exporting(*ON)

    assert await traced(found)

    (trace,) = exporter.traces
    assert (trace.model_name, trace.model_version) == ("m", 1)
    assert [name for _, name in trace.stamps()][:1] == ["REQUEST_START"]


def test_its_settings_are_shown_instead_of_those_of_files(exporting):
    found, _ = exporting(*ON)

    assert found.settings() == {
        "trace_level": ["TIMESTAMPS"],
        "trace_rate": "1",
        "trace_count": "-1",
        "trace_mode": "kept",
        "url": "http://there",
    }


def test_the_plugin_gets_the_settings_of_its_mode_in_their_order(tracer, offer):
    given = offer("kept", Exporter())

    tracer(("mode", "kept"), kept=[("a", "1"), ("a", "2")])

    assert given == [(("a", "1"), ("a", "2"))]


async def test_a_plugin_takes_precedence_over_trace_files(tracer, offer, tmp_path):
    exporter = Exporter()
    offer("triton", exporter)

    assert await traced(tracer(*ON))

    assert len(exporter.traces) == 1
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("config", [{"": [("mode", "bad")]}, {"bad": [("file", "x")]}])
def test_an_unknown_mode_is_refused(config):
    with pytest.raises(CoreError) as caught:
        new(config)

    assert caught.value.kind is Kind.INVALID
    assert "invalid value for trace mode option: bad." in caught.value.message


def test_a_mode_without_its_plugin_is_refused_with_the_package_to_install(tracer, monkeypatch):
    monkeypatch.setattr(
        sys.modules["core.plugins.extras"], "extras", lambda: {"spans": ["core-spans"]}
    )

    tracer(spans=[("url", "x")])  # a setting of a mode that is not used
    with pytest.raises(CoreError) as caught:
        tracer(("mode", "spans"))

    assert caught.value.kind is Kind.INVALID
    assert caught.value.message == (
        "--trace-config=mode=spans: no installed plugin has this mode; "
        "try: pip install --find-links wheels 'core[spans]'"
    )


def test_a_hook_result_of_another_type_is_refused(tracer, offer):
    offer("kept", object())

    with pytest.raises(CoreError) as caught:
        tracer(("mode", "kept"))

    assert caught.value.kind is Kind.INTERNAL
    assert "the plugin of trace mode 'kept' made a object" in caught.value.message


async def test_a_context_makes_a_request_traced_regardless_of_rate_and_count(exporting):
    found, exporter = exporting(("level", "TIMESTAMPS"), ("rate", "0"), ("count", "0"))

    assert found.on and found.takes_context
    assert not await traced(found)
    assert await traced(found, context=found.context(PARENT, ["a=b", "c=d"]))

    assert exporter.traces[0].remote == SpanContext(0xAB, 0xCD, "a=b,c=d")


async def test_requests_with_a_context_are_counted_with_the_others(exporting):
    found, _ = exporting(("level", "TIMESTAMPS"), ("rate", "2"), ("count", "1"))

    assert await traced(found, context=found.context(PARENT, []))
    assert await traced(found)
    assert not await traced(found) and not await traced(found)
    assert found.settings()["trace_count"] == "0"


async def test_a_context_has_no_effect_if_tracing_is_off(exporting):
    found, exporter = exporting(("level", "TIMESTAMPS"), ("rate", "0"))
    found.change({"trace_level": ["OFF"]}, "m")

    assert not await traced(found, context=found.context(PARENT, []))
    assert exporter.traces == []


def test_an_invalid_context_is_ignored(exporting, tracer):
    found, _ = exporting(*ON)

    assert found.context("00-1-2-01", []) is None
    assert found.context(None, ["a=b"]) is None
    assert tracer(*ON).context(PARENT, []) is None  # trace files have none


async def test_an_exporter_without_contexts_gets_traces_without_them(exporting):
    found, exporter = exporting(*ON, takes_context=False)

    assert found.context(PARENT, []) is None
    assert await traced(found)
    assert exporter.traces[0].root is None


async def test_the_context_for_models_is_that_of_their_span(exporting):
    found, exporter = exporting(*ON)
    carriers = []

    def execute(request):
        carriers.append(request.trace.carrier())
        return answered(request)

    found.infer(InferenceRequest("m", {}), "m", 1, execute)
    await asyncio.sleep(0)

    (carrier,) = carriers
    assert json.loads(carrier) == {"traceparent": exporter.traces[0].context.traceparent}


def test_trace_files_have_no_context_for_models():
    assert Trace(1, "m", 1, "", ("TIMESTAMPS",)).carrier() is None


async def test_an_error_is_in_the_trace(exporting):
    found, exporter = exporting(*ON)

    def refuse(request):
        raise invalid("no such input")

    with pytest.raises(CoreError):
        found.infer(InferenceRequest("m", {}), "m", 1, refuse)
    await asyncio.sleep(0)

    assert exporter.traces[0].error == "no such input"


@pytest.mark.parametrize("takes_tensors,tensors", [(False, 0), (True, 1)])
async def test_an_exporter_gets_tensors_if_it_takes_them(exporting, takes_tensors, tensors):
    found, exporter = exporting(("level", "TENSORS"), ("rate", "1"), takes_tensors=takes_tensors)
    request = InferenceRequest("m", {"x": Tensor.of("x", np.ones(1, np.float32))})

    found.infer(request, "m", 1, answered)
    await asyncio.sleep(0)

    entries = exporter.traces[0].entries()
    assert sum("tensor" in entry for entry in entries) == tensors


async def test_an_exporter_that_fails_costs_no_request_and_one_line(exporting, caplog):
    found, exporter = exporting(*ON)
    exporter.export = lambda trace: 1 / 0

    with caplog.at_level(logging.ERROR, "core"):
        assert await traced(found) and await traced(found)
        await found.close()

    assert caplog.text.count("Exporter failed: ZeroDivisionError: division by zero; 1 traces") == 2
    assert found.change({"trace_level": ["OFF"]}) and not found.on


@pytest.mark.parametrize("given_s,found_s", [(-3, 1), (2, 2), (30, 5)])
async def test_the_last_traces_get_a_bounded_time(exporting, given_s, found_s):
    found, exporter = exporting(*ON)

    await found.close(given_s)

    assert exporter.closed == found_s


async def test_an_exporter_that_does_not_end_is_abandoned(exporting, monkeypatch, caplog):
    monkeypatch.setattr("core.telemetry.tracing.tracer._FLUSH_S", (0.0, 0.0))
    monkeypatch.setattr("core.telemetry.tracing.tracer._GRACE_S", 0.0)
    found, exporter = exporting(*ON)
    exporter.close = lambda timeout_s: asyncio.Event().wait()

    with caplog.at_level(logging.ERROR, "core"):
        await found.close()

    assert "Exporter lost its last traces: TimeoutError" in caplog.text
