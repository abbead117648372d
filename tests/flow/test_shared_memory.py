"""Requests whose tensors are in memory that the client shares."""

import asyncio

import numpy as np
import pytest

import core
from core import dtypes
from core.caches import LocalCache
from core.errors import CoreError, Kind
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor


class Double(core.ModelInstance):
    """y = 2 x, after 10 ms."""

    async def execute(self, batch):
        self.model.recorder.batches.append([request.id for request in batch.requests])
        await asyncio.sleep(0.010)
        return {"y": batch["x"] * 2}


class Count(core.ModelInstance):
    """Three answers: x, x + 1, x + 2, ten milliseconds apart."""

    async def execute(self, batch):
        for i in range(3):
            batch.respond(0, {"y": batch["x"] + i}, final=i == 2)
            await asyncio.sleep(0.010)


def ask(chain, *values, memory=None, id=""):
    outputs = () if memory is None else (RequestedOutput("y", memory=memoryview(memory)),)
    array = np.array([values], np.float32)
    return chain.handler(
        InferenceRequest("m", {"x": Tensor.of("x", array)}, id=id, outputs=outputs, shared=True)
    )


def numbers(memory):
    return np.frombuffer(memory, np.float32).tolist()


async def test_each_request_of_a_batch_has_its_own_memory(serve):
    chain = await serve(Double, "dynamic_batching { max_queue_delay_microseconds: 1000 }")
    memories = [bytearray(12) for _ in range(3)]

    replies = [ask(chain, i, i + 1, memory=memory) for i, memory in enumerate(memories)]
    answers = await asyncio.gather(*replies)

    assert len(chain.recorder.batches) == 1
    assert [numbers(memory) for memory in memories] == [[0, 2, 0], [2, 4, 0], [4, 6, 0]]
    assert answers[1].output("y").shape == (1, 2)


async def test_an_output_that_does_not_fit_fails_only_its_request(serve):
    chain = await serve(Double, "dynamic_batching { max_queue_delay_microseconds: 1000 }")
    small, large = bytearray(4), bytearray(8)

    replies = [ask(chain, 1, 2, memory=memory) for memory in (small, large)]

    with pytest.raises(CoreError, match=r"output 'y' \(4 bytes\) should be at least 8") as error:
        await replies[0]
    assert error.value.kind is Kind.INTERNAL
    await replies[1]
    assert (numbers(small), numbers(large)) == ([0], [2, 4])


async def test_memory_of_a_disconnected_client_is_not_written(serve):
    chain = await serve(Double)
    memory = bytearray(4)
    reply = ask(chain, 1, memory=memory)
    await asyncio.sleep(0.005)

    reply.cancel()
    await chain.drain()

    assert numbers(memory) == [0]


async def test_each_answer_of_a_decoupled_model_is_written(serve):
    chain = await serve(Count, max_batch_size=1, decoupled=True)
    memory = bytearray(4)
    found = []

    async for _ in ask(chain, 5, memory=memory):
        found += numbers(memory)

    assert found == [5, 6, 7]


async def test_responses_to_shared_inputs_are_not_cached(serve):
    cache = LocalCache(10_000)
    chain = await serve(Double, "response_cache { enable: true }", cache=cache)
    x = np.array([[1]], np.float32)
    reply = chain.handler(
        InferenceRequest(
            "m", {"x": Tensor("x", dtypes.FP32, (1, 1), raw=x.data.cast("B"))}, shared=True
        )
    )
    x[:] = 50  # the client writes while the request waits

    assert (await reply).output("y").array.tolist() == [[100]]
    assert len(cache) == cache.counters.lookups == 0
    ordinary = InferenceRequest("m", {"x": Tensor.of("x", np.array([[1]], np.float32))})
    assert (await chain.handler(ordinary)).output("y").array.tolist() == [[2]]
