"""A model that doubles its input in virtual time, its requests and answers."""

import asyncio

import numpy as np

import core
from core.request import InferenceRequest
from core.tensor import Tensor

BATCHING = "dynamic_batching { }"


class Double(core.ModelInstance):
    """y = 2 x, after 10 ms. A first value below zero fails the batch."""

    async def execute(self, batch):
        x = batch["x"]
        self.model.recorder.batches.append([request.id for request in batch.requests])
        await asyncio.sleep(0.010)
        if x.size and x.flat[0] < 0:
            raise ValueError("below zero")
        return {"y": x * 2}

    def close(self):
        self.model.recorder.closed += 1


def ask(chain, *values, rows=1, id="", **kwargs):
    array = np.array([values] * rows, np.float32)
    if not chain.signature.max_batch_size:
        array = array[0]
    return chain.handler(InferenceRequest("m", {"x": Tensor.of("x", array)}, id=id, **kwargs))


def y(response):
    return response.output("y").array.tolist()
