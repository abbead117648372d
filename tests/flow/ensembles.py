"""Ensembles of models of a few lines, their requests and answers."""

import asyncio
from pathlib import Path

import numpy as np

import core
from core import config as configuration
from core.errors import not_found
from core.pipeline import ChainServices
from core.pipeline.ensemble import EnsembleChain, StepModels, steps_of
from core.request import InferenceRequest
from core.tensor import Tensor

IO = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "z" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def step(model, takes, gives):
    return (
        f'step {{ model_name: "{model}" input_map {{ key: "x" value: "{takes}" }} '
        f'output_map {{ key: "y" value: "{gives}" }} }}'
    )


class Add(core.ModelInstance):
    """y = x + 1, after 10 ms."""

    async def execute(self, batch):
        await asyncio.sleep(0.010)
        return {"y": batch["x"] + 1}


class Fail(core.ModelInstance):
    async def execute(self, batch):
        raise ValueError("out of order")


class Each(core.ModelInstance):
    """One answer for each value of x."""

    async def execute(self, batch):
        for value in batch.requests[0].inputs["x"].array:
            await asyncio.sleep(0.001)
            batch.respond(0, {"y": np.array([value], np.float32)}, final=False)
        batch.finish(0)


def opener(serve):
    """Return a function that opens an ensemble; the models of its steps are add, fail and each."""

    async def make(steps, io=IO, decoupled=False, max_batch_size=0, most=0):
        models = {
            "add": await serve(Add, max_batch_size=max_batch_size),
            "fail": await serve(Fail, max_batch_size=max_batch_size),
            "each": await serve(Each, max_batch_size=0, decoupled=True),
        }
        text = f'name: "e" platform: "ensemble" max_batch_size: {max_batch_size} {io}'
        if decoupled:
            text += " model_transaction_policy { decoupled: true }"
        text += " ensemble_scheduling { " + " ".join(steps)
        text += f" max_inflight_requests: {most} }}"
        config = configuration.parse_text(text, "test")
        configuration.normalise(config, {}, [])

        asked = []

        def infer(request):
            asked.append(request)
            if request.model_name not in models:
                raise not_found(f"Request for unknown model: '{request.model_name}' is not found")
            return models[request.model_name].handler(request)

        async def check():
            return all([await model.check() for model in models.values()])

        loop = asyncio.get_running_loop()
        chain = EnsembleChain(
            config,
            configuration.signature_of(config, Path(), 1),
            steps_of(config),
            StepModels(infer, lambda: all(model.ready for model in models.values()), check),
            ChainServices(loop, loop.time_ns),
        )
        chain.models, chain.asked = models, asked
        return chain

    return make


def ask(chain, *values, **kwargs):
    array = np.array(values, np.float32)
    if chain.signature.max_batch_size:
        array = array.reshape(1, -1)
    return chain.handler(InferenceRequest("e", {"x": Tensor.of("x", array)}, **kwargs))


def z(response, name="z"):
    return response.output(name).array.ravel().tolist()


async def drained(reply):
    return [z(response) async for response in reply]
