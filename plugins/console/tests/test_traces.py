"""The ring of traces: what it keeps, and its settings."""

import asyncio

import numpy as np
import pytest
from core_console.traces import TraceRing

from core.errors import CoreError
from core.options import Options
from core.request import InferenceRequest
from core.response import Reply
from core.telemetry.tracing import Trace, Tracer
from core.tensor import Tensor

MS = 1_000_000


def trace(number, model="m", ms=1, error="", children=()):
    now = [number * 1000 * MS]
    found = Trace(number, model, 1, f"r{number}", ("TIMESTAMPS",), clock_ns=lambda: now[0])
    found.stamp("REQUEST_START")
    for offset, name in enumerate(children):
        child = found.child(number * 100 + offset, name, 1, "")
        child.stamp("COMPUTE_START")
        vars(child)["attributes"] = {"core.instance": f"{name}_0"}
    now[0] += ms * MS
    found.stamp("REQUEST_END")
    found.error = error
    return found


def filled(*traces, kept=4):
    ring = TraceRing(kept)
    for each in traces:
        ring.export(each)
    return ring


def test_the_last_traces_are_listed_with_the_latest_first():
    ring = filled(trace(1), trace(2))

    assert [each["id"] for each in ring.listed()] == [2, 1]
    assert ring.listed()[0]["us"] == 1000
    assert ring.listed()[0]["spans"][0]["stamps"] == [["REQUEST_START", 0], ["REQUEST_END", 1000]]


def test_of_long_texts_of_clients_only_the_beginning_is_kept():
    long = trace(1, error="e" * 100_000, children=("a",))
    for each in (long, *long.children):
        each.request_id = "i" * 100_000

    (found,) = filled(long).listed()

    assert found["request"] == "i" * 1024
    assert found["error"] == "e" * 4096
    assert long.children[0].request_id == "i" * 1024


def test_slow_and_failed_traces_outlive_many_fast_ones():
    fast = [trace(number) for number in range(3, 200)]

    ring = filled(trace(1, ms=500), trace(2, error="no memory"), *fast)

    found = {each["id"]: each for each in ring.listed()}
    assert found[1]["slow"] and not found[1]["error"]
    assert found[2]["error"] == "no memory"
    assert len(found) < 60


def test_the_traces_of_a_model_are_those_in_which_it_has_a_part():
    ring = filled(trace(1, "a"), trace(2, "b"), trace(3, "ensemble", children=("a", "c")))

    assert [each["id"] for each in ring.listed("a")] == [3, 1]
    (_, one, other) = ring.listed("c")[0]["spans"]
    assert (one["instance"], other["instance"]) == ("a_0", "c_0")


def test_a_request_with_very_many_calls_is_cut():
    (found,) = filled(trace(1, children=["x"] * 250)).listed()

    assert (len(found["spans"]), found["left_out"]) == (201, 50)


async def test_no_tensor_is_kept_at_any_level():
    ring, kept = TraceRing(), []
    ring.export = kept.append
    options = Options.defaults(
        trace_config={"": [("level", "TIMESTAMPS"), ("level", "TENSORS"), ("rate", "1")]}
    )
    tracer = Tracer(options, exporter=ring)

    def answered(request):
        reply = Reply(request)
        reply.send(None, True)
        return reply

    tensor = Tensor.of("x", np.ones(1, np.float32))
    tracer.infer(InferenceRequest("m", {"x": tensor}), "m", 1, answered)
    await asyncio.sleep(0)

    (found,) = kept
    assert found.stamps()
    assert not any("tensor" in entry for entry in found.entries())


async def test_a_closed_ring_holds_nothing():
    ring = filled(trace(1, ms=50, error="e"), trace(2))

    await ring.close(1)

    assert ring.listed() == []


@pytest.mark.parametrize(
    "settings,text",
    [
        ([("size", "3")], "--trace-config=console,size: unknown setting, expected 'kept'"),
        ([("kept", "many")], "kept=many: expected a number from 1 to 10000"),
        ([("kept", "0")], "kept=0: expected a number from 1 to 10000"),
    ],
)
def test_a_wrong_setting_is_refused(settings, text):
    with pytest.raises(CoreError, match=text):
        TraceRing.opened(Options.defaults(), settings)


def test_each_server_finds_its_own_ring_once():
    one, other = Options.defaults(), Options.defaults()

    first = TraceRing.opened(one, [("kept", "7")])

    assert first.shown == {"kept": "7"}
    assert TraceRing.of(other) is None
    assert TraceRing.of(one) is first
    assert TraceRing.of(one) is None
