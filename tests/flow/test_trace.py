"""Traces of requests on their way, in virtual time."""

import asyncio
import json

import numpy as np
import pytest

import core
from core.caches import LocalCache
from core.errors import CoreError
from core.options import Options
from core.request import InferenceRequest
from core.telemetry.tracing import Tracer
from core.tensor import Tensor

MS = 1_000_000
WITH_COMPUTE = [
    "REQUEST_START",
    "QUEUE_START",
    "COMPUTE_START",
    "COMPUTE_INPUT_END",
    "COMPUTE_OUTPUT_START",
    "COMPUTE_END",
    "INFER_RESPONSE_COMPLETE",
    "REQUEST_END",
]


class Double(core.ModelInstance):
    """y = 2x, after 10 ms; fails below zero."""

    async def execute(self, batch):
        await asyncio.sleep(0.010)
        if (batch["x"] < 0).any():
            raise ValueError("below zero")
        return {"y": batch["x"] * 2}


class Each(core.ModelInstance):
    """One answer for each value of x, every 5 ms."""

    async def execute(self, batch):
        for value in batch.requests[0].inputs["x"].array:
            await asyncio.sleep(0.005)
            batch.respond(0, {"y": np.array([value], np.float32)}, final=False)
        batch.finish(0)


class Traces:
    """A tracer before a chain, and the file that it writes."""

    def __init__(self, path, level):
        config = {"": [("rate", "1"), *(("level", each) for each in level)]}
        config["triton"] = [("file", str(path))]
        loop = asyncio.get_running_loop()
        self.tracer = Tracer(Options.defaults(trace_config=config), loop.time_ns)
        self.path = path

    def ask(self, chain, *values, **kwargs):
        shape = (1, -1) if chain.signature.max_batch_size else -1
        x = Tensor.of("x", np.array(values, np.float32).reshape(shape))
        request = InferenceRequest("m", {"x": x}, **kwargs)
        return self.tracer.infer(request, "m", 1, chain.handler)

    async def entries(self):
        await self.tracer.close()
        return json.loads(self.path.read_text())

    async def times(self, id=1):
        """The names of a trace's times, and the times in ms since its first."""
        stamps = [
            stamp
            for entry in await self.entries()
            if entry["id"] == id
            for stamp in entry.get("timestamps", ())
        ]
        first = stamps[0]["ns"]
        return [s["name"] for s in stamps], [round((s["ns"] - first) / MS) for s in stamps]


@pytest.fixture
def traces(tmp_path):
    def make(*level):
        return Traces(tmp_path / "trace", level or ("TIMESTAMPS",))

    return make


async def test_a_trace_has_the_times_of_a_requests_steps(serve, traces):
    found, chain = traces(), await serve(Double)

    await found.ask(chain, 1)

    assert await found.times() == (WITH_COMPUTE, [0, 0, 0, 0, 10, 10, 10, 10])


async def test_a_request_that_waits_is_in_the_queue(serve, traces):
    found, chain = traces(), await serve(Double)

    await asyncio.gather(found.ask(chain, 1), found.ask(chain, 2))

    assert await found.times(2) == (WITH_COMPUTE, [0, 0, 10, 10, 20, 20, 20, 20])


async def test_a_trace_names_the_instance_that_executed_the_request(serve, traces):
    found, chain = traces(), await serve(Double)
    (instance,) = chain.executing

    reply = found.ask(chain, 1)
    trace = reply.request.trace
    running = chain.executing
    await reply

    assert vars(trace)["attributes"] == {"core.instance": instance}
    assert running == {instance: 1}
    await asyncio.sleep(0.001)
    assert chain.executing == {instance: 0}


async def test_an_error_of_the_model_ends_the_trace(serve, traces):
    found, chain = traces(), await serve(Double)

    with pytest.raises(CoreError):
        await found.ask(chain, -1)

    assert (await found.times())[0] == WITH_COMPUTE


async def test_a_refused_request_has_a_short_trace(serve, traces):
    found, chain = traces(), await serve(Double)

    with pytest.raises(CoreError):
        found.tracer.infer(InferenceRequest("m", {}), "m", 1, chain.handler)

    assert (await found.times())[0] == ["REQUEST_START", "REQUEST_END"]


async def test_each_answer_of_a_decoupled_model_is_in_the_trace(serve, traces):
    found, chain = traces(), await serve(Each, max_batch_size=0, decoupled=True)

    async for _ in found.ask(chain, 1, 2, 3):
        pass

    names, times = await found.times()
    answers = [time for name, time in zip(names, times, strict=True) if "RESPONSE" in name]
    assert answers == [5, 10, 15]


async def test_an_answer_from_the_cache_shows_the_lookup_and_no_execution(serve, traces):
    chain = await serve(Double, "response_cache { enable: true }", cache=LocalCache(10_000))
    found = traces()
    await found.ask(chain, 1)

    await found.ask(chain, 1)

    assert (await found.times(2))[0] == [
        "REQUEST_START",
        "QUEUE_START",
        "CACHE_HIT_LOOKUP_START",
        "CACHE_HIT_LOOKUP_END",
        "INFER_RESPONSE_COMPLETE",
        "REQUEST_END",
    ]


async def test_level_tensors_has_inputs_and_outputs(serve, traces):
    found, chain = traces("TENSORS"), await serve(Double)

    await found.ask(chain, 1, 2, id="mine")

    head, *activities = await found.entries()
    assert head == {"id": 1, "model_name": "m", "model_version": 1, "request_id": "mine"}
    x = {"name": "x", "data": "1,2", "shape": "1,2", "dtype": "FP32"}
    assert activities == [
        {"id": 1, "activity": "TENSOR_QUEUE_INPUT", "tensor": x},
        {"id": 1, "activity": "TENSOR_BACKEND_INPUT", "tensor": x},
        {
            "id": 1,
            "activity": "TENSOR_BACKEND_OUTPUT",
            "tensor": {"name": "y", "data": "2,4", "shape": "1,2", "dtype": "FP32"},
        },
    ]


async def test_level_tensors_has_the_outputs_of_an_answer_from_the_cache(serve, traces):
    chain = await serve(Double, "response_cache { enable: true }", cache=LocalCache(10_000))
    found = traces("TENSORS")
    await found.ask(chain, 1)

    await found.ask(chain, 1)

    told = [entry["activity"] for entry in await found.entries() if "activity" in entry]
    assert told == [
        "TENSOR_QUEUE_INPUT",
        "TENSOR_BACKEND_INPUT",
        "TENSOR_BACKEND_OUTPUT",
        "TENSOR_QUEUE_INPUT",
        "TENSOR_BACKEND_OUTPUT",
    ]


async def test_a_request_made_by_a_traced_one_is_its_child(serve, traces):
    found, chain = traces(), await serve(Double)
    replies = []

    def outer(request):
        inner = InferenceRequest("m", dict(request.inputs), trace=request.trace)
        replies.append(found.tracer.step(inner, "m", 1, chain.handler))
        return chain.handler(request)

    x = Tensor.of("x", np.ones((1, 1), np.float32))
    await found.tracer.infer(InferenceRequest("e", {"x": x}), "e", 3, outer)
    await asyncio.gather(*replies)

    heads = [entry for entry in await found.entries() if "model_name" in entry]
    assert heads == [
        {"id": 1, "model_name": "e", "model_version": 3},
        {"id": 2, "model_name": "m", "model_version": 1, "parent_id": 1},
    ]


async def test_a_retained_trace_is_written_when_it_is_released(serve, traces):
    found, chain = traces(), await serve(Double)
    reply = found.ask(chain, 1)
    trace = reply.request.trace
    trace.hold()

    await reply
    await asyncio.sleep(0.005)
    trace.span("HTTP_SEND", 0, 0)
    trace.release()
    await asyncio.sleep(0)

    names, times = await found.times()
    assert names[-3:] == ["REQUEST_END", "HTTP_SEND_START", "HTTP_SEND_END"]
    assert times[-3:] == [10, 15, 15]


async def test_a_trace_can_be_retained_after_an_immediate_response(serve, traces):
    chain = await serve(Double, "response_cache { enable: true }", cache=LocalCache(10_000))
    found = traces()
    await found.ask(chain, 1)

    reply = found.ask(chain, 1)
    assert reply.finished
    reply.request.trace.hold()
    await asyncio.sleep(0.001)
    reply.request.trace.stamp("HTTP_SEND_END")
    reply.request.trace.release()
    await asyncio.sleep(0)

    assert (await found.times(2))[0][-1] == "HTTP_SEND_END"


async def test_without_traces_a_request_carries_none(serve):
    chain = await serve(Double)
    request = InferenceRequest("m", {"x": Tensor.of("x", np.ones((1, 1), np.float32))})

    await chain.handler(request)

    assert request.trace is None
