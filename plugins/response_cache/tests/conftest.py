"""One model whose executions wait until a test lets them go, behind a cache."""

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

import core
from core import config as configuration
from core.errors import CoreError
from core.pipeline import ChainServices
from core.pipeline.chain import Chain
from core.request import InferenceRequest
from core.tensor import Tensor

CONFIG = """
name: "m" backend: "test" max_batch_size: 8 response_cache { enable: true }
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


class Gated(core.ModelInstance):
    """y = x, once the gate of the model is open; fails below zero."""

    async def execute(self, batch):
        self.model.executed.append(batch.rows)
        await self.model.gate.wait()
        if (batch["x"] < 0).any():
            raise ValueError("below zero")
        return {"y": batch["x"]}


class Served:
    """The model. executed: the rows of each execution; gate: open at first."""

    def __init__(self, chain, model):
        self.chain, self.executed, self.gate = chain, model.executed, model.gate

    @property
    def statistics(self):
        return self.chain.statistics

    def request(self, value=1.0, size=1, caller=0, **fields):
        """Return a request that was not sent."""
        x = Tensor.of("x", np.full((1, size), value, np.float32))
        request = InferenceRequest("m", {"x": x}, **fields)
        request.caller = caller
        return request

    def ask(self, *args, **fields):
        """Send a request; return its Reply."""
        return self.chain.handler(self.request(*args, **fields))


@pytest.fixture
async def serve():
    """Serve the model with a cache, until the end of the test."""
    opened = []

    async def start(cache, more=""):
        message = configuration.parse_text(CONFIG + more, "test")
        configuration.normalise(message, {}, [])
        model = core.Model()
        model.name, model.version, model.config = "m", 1, message
        model.path = model.directory = Path()
        model.backend = core.Backend(instance=Gated)
        model.executed, model.gate = [], asyncio.Event()
        model.gate.set()
        loop = asyncio.get_running_loop()
        signature = configuration.signature_of(message, Path(), 1)
        chain = Chain(
            message, signature, ChainServices(loop, clock_ns=time.monotonic_ns, cache=cache)
        )
        (await chain.prepare(model)).commit()
        opened.append(Served(chain, model))
        return opened[-1]

    yield start
    for each in opened:
        each.gate.set()
        await asyncio.wait_for(each.chain.drain(), 10)
        await each.chain.close()
        assert each.chain.in_flight == 0


async def values(*replies):
    """Return the first value of each answer, or the text of its error."""

    async def one(reply):
        try:
            return float((await reply).output("y").array.flat[0])
        except CoreError as error:
            return error.message

    return await asyncio.wait_for(asyncio.gather(*map(one, replies)), 10)


def outputs(size):
    """Return the outputs of a response with some bytes."""
    return [Tensor.of("y", np.zeros(size, np.uint8))]
