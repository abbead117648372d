"""Exporters of traces, which plugins open: their settings, and what they get of a request."""

import asyncio
import json
import logging
import sys

import numpy as np
import pytest
from unit.telemetry.kept_traces import ON, Exporter, answered, new, traced

from core.errors import CoreError, Kind, invalid
from core.request import InferenceRequest
from core.telemetry.tracing import Trace
from core.telemetry.tracing.context import SpanContext
from core.tensor import Tensor

PARENT = f"00-{0xAB:032x}-{0xCD:016x}-00"


@pytest.mark.parametrize("takes_tensors,warnings", [(False, 1), (True, 0)])
def test_tensors_that_an_exporter_does_not_take_are_a_warning(
    exporting, caplog, takes_tensors, warnings
):
    with caplog.at_level(logging.WARNING, "core"):
        exporting(("level", "TENSORS"), takes_tensors=takes_tensors)

    text = "Tensor level tracing is not supported by the mode: kept"
    assert caplog.text.count(text) == warnings


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
