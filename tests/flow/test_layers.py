"""Layers of plugins around a model, and the hook about its batches."""

import asyncio

import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError, unavailable
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core.tensor import Tensor


class Double(core.ModelInstance):
    async def execute(self, batch):
        self.model.recorder.batches.append(batch.rows)
        await asyncio.sleep(0.010)
        return {"y": 2 * batch["x"]}


class Plugin:
    """Gives `layers` to every model and keeps `timings` of its batches."""

    def __init__(self, layers):
        self.layers = layers
        self.timings = []

    @core.hookimpl
    def core_layers(self, model):
        self.model = model
        return self.layers

    @core.hookimpl
    def core_batch_done(self, model, timing):
        self.timings.append((model.name, timing))


@pytest.fixture
def plugin():
    registered = []

    def register(*layers):
        registered.append(Plugin(list(layers) or None))
        plugins.hooks().register(registered[-1], f"test plugin {len(registered)}")
        return registered[-1]

    yield register
    for each in registered:
        plugins.hooks().unregister(each)


def request(*values):
    return InferenceRequest("m", {"x": Tensor.of("x", np.array([values], np.float32))})


async def y(reply):
    return (await reply).output("y").array.ravel().tolist()


def noting(notes, name):
    def layer(handler):
        def noted(request):
            notes.append(name)
            return handler(request)

        return noted

    return layer


async def test_layers_are_called_from_the_outside_in_for_each_request(serve, plugin):
    notes = []
    plugin(noting(notes, "outer"), noting(notes, "inner"))
    chain = await serve(Double)

    assert await y(chain.handler(request(1, 2))) == [2, 4]
    assert await y(chain.handler(request(3, 4))) == [6, 8]

    assert notes == ["outer", "inner"] * 2
    await chain.close()


async def test_the_first_plugin_has_the_outermost_layer(serve, plugin):
    notes = []
    plugin(noting(notes, "registered first"))
    plugin(noting(notes, "registered last"))
    chain = await serve(Double)

    await chain.handler(request(1))

    assert notes == ["registered last", "registered first"]
    await chain.close()


async def test_the_hook_gets_the_model_before_its_instances_open(serve, plugin):
    mine = plugin()

    class Watched(Double):
        def open(self):
            assert mine.model is self.model

    chain = await serve(Watched)

    await chain.close()


async def test_a_model_without_layers_has_no_layer_overhead(serve, plugin):
    plugin()
    chain = await serve(Double)

    assert [type(room).__name__ for room in chain.handlers] == ["SingleBatcher"]
    await chain.close()


async def test_a_layer_may_refuse(serve, plugin):
    def layer(handler):
        def refuse(request):
            raise unavailable("closed today")

        return refuse

    plugin(layer)
    chain = await serve(Double)

    with pytest.raises(CoreError, match="closed today"):
        chain.handler(request(1))

    assert chain.in_flight == 0
    assert chain.recorder.batches == []
    await chain.close()


async def test_a_layer_may_answer_alone(serve, plugin):
    def layer(handler):
        def answer(request):
            reply = Reply(request)
            reply.send(InferenceResponse("m", 1, [Tensor.of("y", np.zeros((1, 1), np.float32))]))
            return reply

        return answer

    plugin(layer)
    chain = await serve(Double)

    assert await y(chain.handler(request(1))) == [0]
    assert chain.in_flight == 0
    await chain.close()


async def test_a_model_drains_after_the_answer_of_a_layer_that_takes_its_time(serve, plugin):
    def layer(handler):
        def later(request):
            outer = Reply(request)

            async def ask():
                await asyncio.sleep(1)
                handler(request).listen(outer.send)

            tasks.append(asyncio.ensure_future(ask()))
            return outer

        return later

    tasks = []
    plugin(layer)
    chain = await serve(Double)

    reply = chain.handler(request(1))
    draining = asyncio.ensure_future(chain.drain())
    await asyncio.sleep(0.5)
    assert not draining.done()

    assert await y(reply) == [2]
    await draining
    assert chain.in_flight == 0
    await chain.close()


async def test_an_exception_of_a_layer_fails_its_request_with_its_text(serve, plugin):
    plugin(lambda handler: lambda request: 1 / 0)
    chain = await serve(Double)

    with pytest.raises(CoreError) as caught:
        chain.handler(request(1))

    assert caught.value.message == "a layer of a plugin failed: ZeroDivisionError: division by zero"
    assert chain.in_flight == 0
    await chain.close()


async def test_a_hook_that_returns_no_list_of_functions_fails_the_load(serve, plugin):
    plugin(5)

    with pytest.raises(CoreError, match=r"plugin 'test plugin 1': core_layers returned \[5\]"):
        await serve(Double)


async def test_requests_that_the_queue_refuses_are_refused_through_layers(serve, plugin):
    plugin(lambda handler: lambda request: handler(request))
    chain = await serve(
        Double, "dynamic_batching { default_queue_policy { max_queue_size: 1 } }", 1
    )

    replies = []
    with pytest.raises(CoreError, match="maximum queue size"):
        for value in range(9):
            replies.append(chain.handler(request(value)))

    for reply in replies:
        await reply
    assert chain.in_flight == 0
    await chain.close()


async def test_the_hook_gets_the_times_of_each_batch(serve, plugin):
    mine = plugin()
    chain = await serve(Double, "dynamic_batching { }")

    await asyncio.gather(*(y(chain.handler(request(value))) for value in range(3)))

    assert [name for name, _ in mine.timings] == ["m"] * len(mine.timings)
    timings = [timing for _, timing in mine.timings]
    assert sum(timing.requests for timing in timings) == 3
    assert sum(timing.rows for timing in timings) == 3
    for timing in timings:
        assert timing.error is None
        assert timing.start_ns <= timing.compute_start_ns <= timing.compute_end_ns <= timing.end_ns
        assert timing.compute_end_ns - timing.compute_start_ns == 10_000_000
    await chain.close()


async def test_the_hook_gets_the_error_of_an_execution(serve, plugin):
    class Broken(core.ModelInstance):
        placement = "inline"

        def execute(self, batch):
            raise ValueError("bad day")

    mine = plugin()
    chain = await serve(Broken)

    with pytest.raises(CoreError):
        await chain.handler(request(1))

    ((_, timing),) = mine.timings
    assert repr(timing.error) == "ValueError('bad day')"
    await chain.close()


async def test_a_plugin_that_fails_in_core_batch_done_affects_no_response(serve, plugin, caplog):
    mine = plugin()
    mine.timings = None
    chain = await serve(Double)

    assert await y(chain.handler(request(1))) == [2]

    assert (
        "plugin 'test plugin 1' failed in core_batch_done at tests/flow/test_layers" in caplog.text
    )
    assert "AttributeError" in caplog.text
    await chain.close()
