"""W3C Trace Context: the headers of a client, and the context that models pass on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import INVALID_SPAN, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from core.telemetry.tracing.context import SpanContext, first, parsed

TRACE = 0x0AF7651916CD43DD8448EB211C12666C
SPAN = 0xB7AD6B7169203331
PARENT = f"00-{TRACE:032x}-{SPAN:016x}-01"


def test_a_traceparent_names_a_trace_and_a_span():
    assert parsed(PARENT) == SpanContext(TRACE, SPAN)


@pytest.mark.parametrize("flags", ["00", "01", "03", "ff"])
def test_flags_of_a_traceparent_are_ignored(flags):
    assert parsed(PARENT[:-2] + flags) == SpanContext(TRACE, SPAN)


def test_a_later_version_may_have_fields_after_its_flags():
    assert parsed("cc" + PARENT[2:] + "-what-comes") == SpanContext(TRACE, SPAN)
    assert parsed("00" + PARENT[2:] + "-what-comes") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        PARENT.upper(),
        PARENT[:-1],
        PARENT + "0",
        "ff" + PARENT[2:],
        f"00-{0:032x}-{SPAN:016x}-01",
        f"00-{TRACE:032x}-{0:016x}-01",
        PARENT.replace("-", "_"),
        PARENT[:-2] + "0x",
    ],
)
def test_an_invalid_traceparent_is_ignored(text):
    assert parsed(text, "a=b") is None


@pytest.mark.parametrize(
    "text,state",
    [
        ("a=b,c=d", "a=b,c=d"),
        (" a=b ,\t, c=d", "a=b,c=d"),
        ("tenant@system=1,a-b/c*_=2", "tenant@system=1,a-b/c*_=2"),
        ("", ""),
        ("a=b,a=c", ""),
        ("a", ""),
        ("A=b", ""),
        ("a=b=c", ""),
        (",".join(f"k{i}=v" for i in range(33)), ""),
        (",".join(f"k{i}=v" for i in range(32)), ",".join(f"k{i}=v" for i in range(32))),
    ],
)
def test_a_tracestate_is_passed_on_if_it_is_one(text, state):
    assert parsed(PARENT, text) == SpanContext(TRACE, SPAN, state)


_DIGITS = st.sampled_from("0123456789abcdef")


def _field(size):
    """Mostly so many digits; sometimes zeros, or a near miss."""
    near = st.text("0123456789abcdefABg", min_size=size - 1, max_size=size + 1)
    right = st.text(_DIGITS, min_size=size, max_size=size)
    return st.one_of(right, right, right, st.just("0" * size), near)


@given(
    st.one_of(st.just("00"), _field(2)),
    _field(32),
    _field(16),
    _field(2),
    st.sampled_from(["", "", "-", "-x", "x", " ", "\t"]),
)
def test_it_is_a_context_exactly_where_opentelemetry_finds_one(version, trace, span, flags, more):
    text = f"{version}-{trace}-{span}-{flags}{more}"
    theirs = get_current_span(TraceContextTextMapPropagator().extract({"traceparent": text}))

    found = parsed(text)

    if theirs is INVALID_SPAN or not theirs.get_span_context().is_valid:
        assert found is None
    else:
        context = theirs.get_span_context()
        assert found == SpanContext(context.trace_id, context.span_id)


def test_a_child_is_another_span_of_the_same_trace():
    parent = SpanContext(TRACE, SPAN, "a=b")

    child = parent.child()

    assert (child.trace_id, child.state) == (TRACE, "a=b")
    assert child.span_id not in (0, SPAN)


def test_a_carrier_is_readable_by_the_next_server():
    context = SpanContext(TRACE, SPAN, "a=b")

    told = json.loads(context.carrier())

    assert told == {"traceparent": PARENT, "tracestate": "a=b"}
    assert parsed(**told) == context
    assert json.loads(SpanContext(TRACE, SPAN).carrier()) == {"traceparent": PARENT}


def test_new_traces_have_different_ids():
    assert first() != first()
