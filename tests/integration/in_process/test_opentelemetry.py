"""Spans of requests of this program, received by a collector."""

import contextlib

import numpy as np
import pytest

import core

TRACE, SPAN = "0af7651916cd43dd8448eb211c12666c", "b7ad6b7169203331"
CLIENT = f"00-{TRACE}-{SPAN}-00"
ROW = {"inputs": {"x": ("FP32", [-1])}, "outputs": {"y": ("FP32", [-1])}}
X = {"x": np.arange(4, dtype=np.float32)}


@contextlib.contextmanager
def serving(**options):
    with core.Server(**options) as server:
        server.bind("double", lambda x: 2 * x, **ROW)
        yield server


def only_with_a_context(config):
    return {**config, "": [*config[""], ("rate", "0")]}


def test_the_span_of_the_caller_is_the_parent(collector):
    with serving(trace_config=only_with_a_context(collector.config)) as server:
        server.infer("double", X)
        server.infer("double", X, id="mine", traceparent=CLIENT)
        list(server.stream("double", X, traceparent=CLIENT))

    roots = [each for each in collector.spans if each.name == "InferRequest"]
    assert [(each.trace, each.parent) for each in roots] == [(TRACE, SPAN)] * 2


@pytest.mark.parametrize("traceparent", [None, "", "none"])
def test_a_request_without_a_valid_context_begins_a_trace(collector, traceparent):
    with serving(trace_config=collector.config) as server:
        server.infer("double", X, traceparent=traceparent)

    (root,) = collector.named("InferRequest")
    assert root.parent == ""


@pytest.mark.parametrize("mode", [None, "triton"])
def test_a_context_has_no_effect_without_spans(tmp_path, mode):
    options = {}
    if mode is not None:
        common = [("mode", mode), ("level", "TIMESTAMPS"), ("rate", "1")]
        options["trace_config"] = {"": common, mode: [("file", str(tmp_path / "trace"))]}
    with serving(**options) as server:
        found = server.infer("double", X, traceparent=CLIENT)

    np.testing.assert_array_equal(found["y"], 2 * X["x"])


def test_a_traceparent_is_a_text():
    with serving() as server, pytest.raises(core.CoreError, match="traceparent=b'00'"):
        server.infer("double", X, traceparent=b"00")
