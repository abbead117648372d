"""The objects of a request are freed with its last response, without the garbage collector."""

import asyncio
import gc
import weakref

import numpy as np
import pytest
from core_testing.leftovers import settles

import core
from core import dtypes
from core.request import InferenceRequest
from core.tensor import Tensor


class Memory(np.ndarray):
    """An array that can be watched."""


class Double(core.ModelInstance):
    async def execute(self, batch):
        await asyncio.sleep(0.010)
        return {"y": batch["x"] * 2}


class OnThread(core.ModelInstance):
    def execute(self, batch):
        return {"y": batch["x"] * 2}


class Failing(core.ModelInstance):
    def execute(self, batch):
        batch.fail(0, "out of order")


class Later(core.ModelInstance):
    """Answers after execute has returned."""

    async def execute(self, batch):
        batch.defer(0)
        asyncio.get_running_loop().call_later(0.010, batch.respond, 0, {"y": batch["x"]})


class Three(core.ModelInstance):
    async def execute(self, batch):
        for i in range(3):
            batch.respond(0, {"y": batch["x"]}, final=i == 2)
            await asyncio.sleep(0.010)


@pytest.fixture(autouse=True)
def no_garbage_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def ask(chain):
    """A request, and a reference to the memory of its input that does not hold it."""
    memory = np.ones((1, 2), np.float32).view(Memory)
    request = InferenceRequest("m", {"x": Tensor("x", dtypes.FP32, (1, 2), array=memory)})
    return chain.handler(request), weakref.ref(memory)


async def listen(reply):
    """Every item until the last; their number."""
    over, items = asyncio.Event(), 0

    def arrive(item, final):
        nonlocal items
        items += 1
        assert reply is not None  # as a frontend's listener may hold its reply
        if final:
            over.set()

    reply.listen(arrive)
    await over.wait()
    return items


@pytest.mark.parametrize(
    "instance,decoupled,items",
    [
        (Double, False, 1),
        (OnThread, False, 1),
        (Failing, False, 1),
        (Later, False, 1),
        (Three, True, 3),
    ],
)
async def test_memory_goes_with_the_last_answer(serve, instance, decoupled, items):
    chain = await serve(instance, max_batch_size=1, decoupled=decoupled)
    reply, memory = ask(chain)
    assert memory() is not None

    assert await listen(reply) == items
    del reply

    # The instance, perhaps on a thread, finishes its work after the response.
    assert await asyncio.to_thread(settles, lambda: memory() is None)
    await chain.drain()
    await chain.close()


async def test_memory_goes_when_the_client_does(serve):
    chain = await serve(Double, max_batch_size=1)
    first, _ = ask(chain)
    waiting, memory = ask(chain)

    waiting.cancel()
    del waiting
    await asyncio.sleep(0.001)

    assert memory() is None
    await first
    await chain.drain()
