"""Spans: the form of a trace and its children."""

from core_opentelemetry.spans import MOST_EVENTS, spans_of

from core.telemetry.tracing.context import SpanContext
from core.telemetry.tracing.trace import Trace

TIMES = ("TIMESTAMPS",)
EXECUTION = ("COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END")


def trace(id=1, model="m", request_id="", level=TIMES, remote=None):
    found = Trace(id, model, 1, request_id, level, clock_ns=lambda: 100)
    found.begin_spans(remote)
    return found


def stamp(found, *names, at_ns=100):
    for number, name in enumerate(names):
        found.stamp(name, at_ns + number)


def served(found, at_ns=100):
    """Add the timestamps of a request that was executed to the trace `found`, and return it."""
    stamp(found, "REQUEST_START", "QUEUE_START", *EXECUTION, "REQUEST_END", at_ns=at_ns)
    return found


def named(spans):
    return {span.name: span for span in spans}


def events(span):
    return [name for name, _ in span.events]


def test_a_request_is_a_span_with_its_model_and_the_execution_below():
    spans = spans_of(served(trace()), 0)

    assert [span.name for span in spans] == ["compute", "m", "InferRequest"]
    compute, model, root = spans
    assert compute.parent == model.context
    assert model.parent == root.context
    assert root.parent is None
    assert {span.context.trace_id for span in spans} == {root.context.trace_id}
    assert len({span.context.span_id for span in spans}) == 3


def test_events_are_where_they_happen():
    found = trace()
    stamp(found, "HTTP_RECV_START", "HTTP_RECV_END", at_ns=50)
    served(found)
    stamp(found, "INFER_RESPONSE_COMPLETE", "HTTP_SEND_START", "HTTP_SEND_END", at_ns=200)

    spans = named(spans_of(found, 0))

    assert events(spans["compute"]) == list(EXECUTION)
    assert events(spans["m"]) == ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
    assert events(spans["InferRequest"]) == [
        "HTTP_RECV_START",
        "HTTP_RECV_END",
        "INFER_RESPONSE_COMPLETE",
        "HTTP_SEND_START",
        "HTTP_SEND_END",
    ]


def test_a_span_lasts_from_its_first_event_to_its_last():
    found = trace()
    stamp(found, "GRPC_WAITREAD_START", at_ns=50)
    served(found)
    stamp(found, "GRPC_SEND_END", at_ns=200)

    spans = named(spans_of(found, 1000))

    times = {name: (span.start_ns, span.end_ns) for name, span in spans.items()}
    assert times == {
        "compute": (1102, 1105),
        "m": (1100, 1106),
        "InferRequest": (1050, 1200),
    }
    assert spans["compute"].events[0] == ("COMPUTE_START", 1102)


def test_attributes_are_those_of_the_model():
    found = served(trace(7, request_id="mine"))
    child = served(found.child(8, "other", 3, ""))

    spans = named(spans_of(found, 0))

    assert spans["m"].attributes == {
        "triton.model_name": "m",
        "triton.model_version": 1,
        "triton.trace_id": 7,
        "triton.trace_parent_id": 0,
        "triton.request_id": "mine",
    }
    assert spans["other"].attributes["triton.trace_parent_id"] == 7
    assert "triton.request_id" not in spans["other"].attributes
    assert spans["other"].context == child.context
    assert not spans["compute"].attributes and not spans["InferRequest"].attributes


def test_models_that_a_model_calls_are_below_it_at_any_depth():
    caller = served(trace(model="caller"))
    ensemble = caller.child(2, "ensemble", 1, "")
    stamp(ensemble, "REQUEST_START", "QUEUE_START", "REQUEST_END")
    served(ensemble.child(3, "step", 1, ""))

    spans = spans_of(caller, 0)

    by_id = {span.context.span_id: span.name for span in spans}
    tree = sorted((by_id[span.parent.span_id], span.name) for span in spans if span.parent)
    assert tree == [
        ("InferRequest", "caller"),
        ("caller", "compute"),
        ("caller", "ensemble"),
        ("ensemble", "step"),
        ("step", "compute"),
    ]


def test_the_span_of_a_client_is_the_parent_of_all():
    client = SpanContext(5, 6, "a=b")
    found = served(trace(remote=client))

    spans = named(spans_of(found, 0))

    assert spans["InferRequest"].parent == client
    assert [span.from_client for span in spans.values()] == [False, False, True]
    assert {(s.context.trace_id, s.context.state) for s in spans.values()} == {(5, "a=b")}


def test_another_activity_is_a_span_between_its_times():
    found = trace()
    stamp(found, "REQUEST_START", "QUEUE_START", at_ns=10)
    found.span("CACHE_HIT_LOOKUP", 20, 30)
    stamp(found, "TOKEN", "REQUEST_END", at_ns=40)

    spans = named(spans_of(found, 0))

    lookup = spans["CACHE_HIT_LOOKUP"]
    assert (lookup.start_ns, lookup.end_ns) == (20, 30)
    assert lookup.parent == spans["m"].context
    assert events(spans["m"]) == ["REQUEST_START", "QUEUE_START", "TOKEN", "REQUEST_END"]


def test_a_failure_is_in_the_spans_of_the_model_and_the_request():
    found = served(trace())
    found.error = "below zero"

    spans = named(spans_of(found, 0))

    assert {name: span.error for name, span in spans.items()} == {
        "compute": "",
        "m": "below zero",
        "InferRequest": "below zero",
    }


def test_a_span_without_an_end_ends_with_its_model():
    found = trace()
    stamp(found, "REQUEST_START", "QUEUE_START", "COMPUTE_START", "REQUEST_END")

    spans = named(spans_of(found, 0))

    assert spans["compute"].end_ns == spans["m"].end_ns == 103


def test_of_very_many_events_the_first_and_the_last_are_kept():
    found = served(trace())
    stamp(found, *["INFER_RESPONSE_COMPLETE"] * 2 * MOST_EVENTS, "HTTP_SEND_END", at_ns=1000)

    root = named(spans_of(found, 0))["InferRequest"]

    assert len(root.events) == MOST_EVENTS
    assert root.events[-1] == ("HTTP_SEND_END", 1000 + 2 * MOST_EVENTS)
    assert root.end_ns == 1000 + 2 * MOST_EVENTS


def test_without_times_there_is_the_request_alone():
    found = served(trace(level=()))

    (root,) = spans_of(found, 0)

    assert (root.name, root.start_ns, root.end_ns, root.events) == ("InferRequest", 100, 100, [])
    assert found.carrier() is None


def test_attributes_that_a_plugin_adds_to_a_trace_are_those_of_its_models_span():
    found = served(trace())
    vars(found)["attributes"] = {"gen_ai.response.finish_reasons": ("stop",), "share": 0.5}

    spans = named(spans_of(found, 0))

    attributes = spans["m"].attributes
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert (attributes["share"], attributes["triton.model_name"]) == (0.5, "m")
    assert spans["compute"].attributes == {}
