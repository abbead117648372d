"""Requests that fail, are refused or are cancelled on their way through the pipeline, and the stop."""

import asyncio

import numpy as np
import pytest
from flow.doubling import BATCHING, Double, ask, y

import core
from core.errors import CoreError, Kind
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor


async def test_a_wrong_shape_is_refused_before_the_queue(serve):
    chain = await serve(Double)

    with pytest.raises(CoreError, match="unexpected shape for input 'x' for model 'm'") as error:
        chain.handler(InferenceRequest("m", {"x": Tensor.of("x", np.zeros((1, 1, 1), np.float32))}))

    assert error.value.kind is Kind.INVALID
    assert chain.in_flight == 0
    assert chain.statistics.fail.count == 0


async def test_an_exception_fails_its_batch_and_not_the_next(serve):
    chain = await serve(Double)

    bad, good = ask(chain, -1), ask(chain, 1)

    with pytest.raises(
        CoreError, match=r"failed at \S+doubling\.py:\d+: ValueError: below zero"
    ) as error:
        await bad
    assert error.value.kind is Kind.INTERNAL
    assert y(await good) == [[2]]
    assert chain.statistics.failures["BACKEND"] == 1
    assert (chain.statistics.execution_count, chain.statistics.inference_count) == (2, 1)


async def test_a_fatal_error_takes_the_instance_out_of_service(serve):
    class Dying(Double):
        async def execute(self, batch):
            raise core.Fatal("the device is gone")

    chain = await serve(Dying)

    running, waiting = ask(chain, 1), ask(chain, 2)

    with pytest.raises(CoreError, match="the device is gone"):
        await running
    with pytest.raises(CoreError, match="no instance of the model is left") as error:
        await waiting
    assert error.value.kind is Kind.UNAVAILABLE
    assert not chain.ready
    assert chain.in_flight == 0


@pytest.mark.parametrize(
    "outputs,text",
    [
        ({"z": np.zeros((1, 1), np.float32)}, "unexpected inference output 'z'"),
        ({"y": np.zeros((1, 1), np.int8)}, "output 'y' as INT8, its configuration says FP32"),
        ({"y": np.zeros((2, 1), np.float32)}, "for a batch of 1 rows"),
        (
            None,
            "without an answer to request 0 of a batch of 1; did execute forget to return its outputs",
        ),
    ],
)
async def test_errors_name_wrong_outputs(serve, outputs, text):
    class Wrong(Double):
        async def execute(self, batch):
            return outputs

    chain = await serve(Wrong)

    with pytest.raises(CoreError, match=text):
        await ask(chain, 1)


async def test_a_request_can_fail_alone_in_its_batch(serve):
    class Picky(Double):
        async def execute(self, batch):
            for i, request in enumerate(batch.requests):
                if request.inputs["x"].array[0, 0] == 1:
                    batch.fail(i, "I do not like this one")
                else:
                    batch.respond(i, {"y": request.inputs["x"].array}, {"liked": True})

    chain = await serve(Picky, BATCHING)

    one, two = ask(chain, 1), ask(chain, 2)

    with pytest.raises(CoreError, match="I do not like this one"):
        await one
    assert (await two).parameters == {"liked": True}
    assert chain.statistics.success.count == 2  # an error on purpose is an answer


async def test_an_unknown_output_is_refused(serve):
    chain = await serve(Double)

    with pytest.raises(CoreError, match="unexpected inference output 'z' for model 'm'"):
        ask(chain, 1, outputs=(RequestedOutput("z"),))


async def test_a_cancelled_request_never_reaches_execute(serve):
    chain = await serve(Double, BATCHING)
    running = ask(chain, 1, id="running")
    await asyncio.sleep(0.001)
    waiting = ask(chain, 2, id="waiting")

    waiting.cancel()

    with pytest.raises(CoreError) as error:
        await waiting
    await running
    assert error.value.kind is Kind.CANCELLED
    assert chain.recorder.batches == [["running"]]
    assert chain.statistics.failures["CANCELED"] == 1


async def test_a_running_model_sees_a_cancellation(serve):
    seen = []

    class Watching(Double):
        async def execute(self, batch):
            await asyncio.sleep(0.01)
            seen.append(batch.requests[0].cancelled)
            return {"y": batch["x"]}

    chain = await serve(Watching)
    reply = ask(chain, 1)
    await asyncio.sleep(0.001)
    reply.cancel()
    await asyncio.sleep(0.02)

    assert seen == [True]
    assert chain.in_flight == 0


async def test_a_request_that_waits_too_long_is_refused_on_time(serve):
    chain = await serve(
        Double,
        "dynamic_batching { default_queue_policy { default_timeout_microseconds: 4000 } }",
    )
    loop = asyncio.get_running_loop()
    running = ask(chain, 1)
    await asyncio.sleep(0.001)
    start = loop.time()

    with pytest.raises(CoreError, match="Request timeout expired") as error:
        await ask(chain, 2)

    assert error.value.kind is Kind.UNAVAILABLE
    assert loop.time() - start == pytest.approx(0.004, abs=0.0005)
    assert chain.statistics.failures["REJECTED"] == 1
    await running


async def test_drain_waits_for_the_last_reply_and_refuses_new_requests(serve):
    chain = await serve(Double, BATCHING)
    replies = [ask(chain, number) for number in range(20)]
    drained = asyncio.ensure_future(chain.drain())
    await asyncio.sleep(0)

    with pytest.raises(CoreError, match="has stopped accepting new inference requests") as error:
        ask(chain, 1)
    assert error.value.kind is Kind.UNAVAILABLE
    assert not drained.done()
    await drained
    assert chain.in_flight == 0
    assert [y(await reply)[0][0] for reply in replies] == [2 * number for number in range(20)]


async def test_close_closes_every_instance_once(serve):
    chain = await serve(Double, "instance_group [ { count: 3 kind: KIND_CPU } ]")

    await chain.close()
    await chain.close()

    assert chain.recorder.closed == 3


async def test_an_instance_that_does_not_open_closes_the_others_and_fails_the_load(serve):
    closed = []

    class Third(Double):
        def open(self):
            if self.name.endswith("_2"):
                raise RuntimeError("no memory for the third")

        def close(self):
            closed.append(self.name)

    with pytest.raises(CoreError, match="RuntimeError: no memory for the third"):
        await serve(Third, 'instance_group [ { name: "g" count: 3 kind: KIND_CPU } ]')
    assert sorted(closed) == ["g_0", "g_1"]
