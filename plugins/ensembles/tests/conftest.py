"""Ensembles of small models, opened as a load opens them, in virtual time.

`ensemble("x FP32[-1] -> z FP32[-1]", "halve x=x -> y=z", …)` writes config.pbtxt: tensors of the
ensemble, then each step: model, its input=the ensemble's tensor -> its output=the ensemble's tensor.
"""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from flow.conftest import VirtualTimeLoop

import core
from core import config as configuration
from core import plugins
from core.errors import CoreError, not_found
from core.lifecycle.ensemble import open_ensemble
from core.pipeline import ChainServices, open_chain
from core.request import InferenceRequest
from core.telemetry.statistics import Statistics
from core.tensor import Tensor

VIRTUAL = (
    "test_conditions.py",
    "test_loops.py",
    "test_loops_of_requests.py",
    "test_loops_refused.py",
    "test_loops_skipped.py",
    "test_simulation.py",
)
STEP_S = 0.010
X_Z = "x FP32[-1] -> z FP32[-1]"
HALVE = "halve x=x -> y=z"


def pytest_asyncio_loop_factories(config, item):
    if item.path.name in VIRTUAL:
        return {"virtual-time": VirtualTimeLoop}
    return {"real-time": asyncio.SelectorEventLoop}


def tensors(text):
    """`x FP32[-1], y BOOL[1]?` → the entries of `input` or `output`; `?` is an optional input."""
    found = []
    for name, datatype, dims, optional in re.findall(r"(\w+) (\w+)\[(.*?)\](\??)", text):
        kind = "STRING" if datatype == "BYTES" else datatype
        more = " optional: true" if optional else ""
        found.append(f'{{ name: "{name}" data_type: TYPE_{kind} dims: [ {dims} ]{more} }}')
    return ", ".join(found)


def ensemble(signature, *steps, batch=0, most=0, **parameters):
    """Text of config.pbtxt. The parameters have the keys `step1_if`, `loop0_while`, …"""
    takes, _, gives = signature.partition("->")
    rows = []
    for row in steps:
        model, maps = row.split(" ", 1)
        pairs = [re.findall(r"(\w+)=(\w+)", side) for side in maps.split("->")]
        entries = [
            f'{kind} {{ key: "{theirs}" value: "{ours}" }}'
            for kind, found in zip(("input_map", "output_map"), pairs, strict=True)
            for theirs, ours in found
        ]
        rows.append(f'{{ model_name: "{model}" model_version: -1 {" ".join(entries)} }}')
    text = (
        f'name: "e" platform: "ensemble" max_batch_size: {batch}\n'
        f"input [ {tensors(takes)} ]\noutput [ {tensors(gives)} ]\n"
        f"ensemble_scheduling {{ max_inflight_requests: {most} step [ {', '.join(rows)} ] }}\n"
    )
    for key, value in parameters.items():
        name = re.sub(r"^(step|loop)(\d+)_", r"\1[\2].", key)
        value = value.replace("'", "\\'")
        text += f"parameters {{ key: \"{name}\" value {{ string_value: '{value}' }} }}\n"
    return text


def halving(**more):
    """Halve x until it is at most 1."""
    return ensemble(
        X_Z,
        HALVE,
        **{
            "loop0_steps": "0",
            "loop0_while": "max(z) > 1",
            "loop0_max_turns": "10",
            "loop0_carry": "z -> x",
            **more,
        },
    )


def parsed(text):
    """The normalised, validated configuration of an ensemble, and its signature."""
    config = configuration.parse_text(text, "test")
    configuration.normalise(config, {}, [])
    configuration.validate_source(config, plugins.formats())
    return config, configuration.signature_of(config, Path(), 1)


class Function(core.ModelInstance):
    """Calls the model's function with the inputs of each batch, after 10 ms."""

    async def execute(self, batch):
        await asyncio.sleep(STEP_S)
        self.model.rows.append(batch.rows)
        found = self.model.function(**{name: batch[name] for name in self.model.names})
        if isinstance(found, Exception):
            raise found
        if not self.model.decoupled:
            return found
        for outputs in found:
            batch.respond(0, outputs, final=False)
        batch.finish(0)
        return None


class Optional(core.ModelInstance):
    """The same, with the inputs that the request has."""

    async def execute(self, batch):
        await asyncio.sleep(STEP_S)
        inputs = {name: tensor.array for name, tensor in batch.requests[0].inputs.items()}
        return self.model.function(**inputs)


class Models:
    """The models that steps name: what a load finds of the server (core.lifecycle.host.ServedModels)."""

    def __init__(self):
        self.chains = {}
        self.asked = []
        self.turns = []

    async def add(self, name, signature, function, *, batch=0, decoupled=False, config=""):
        """Serve a function: `add("halve", "x FP32[-1] -> y FP32[-1]", lambda x: {"y": x / 2})`."""
        takes, _, gives = signature.partition("->")
        text = (
            f'name: "{name}" backend: "test" max_batch_size: {batch} input [ {tensors(takes)} ] '
            f"output [ {tensors(gives)} ] {config}"
        )
        if decoupled:
            text += " model_transaction_policy { decoupled: true }"
        message = configuration.parse_text(text, "test")
        configuration.normalise(message, {}, [])
        model = core.Model()
        model.config, model.name, model.version = message, name, 1
        model.path = model.directory = Path()
        model.function, model.decoupled, model.rows = function, decoupled, []
        model.names = [io.name for io in message.input]
        instance = Optional if any(io.optional for io in message.input) else Function
        model.backend = core.Backend(instance=instance)
        loop = asyncio.get_running_loop()
        services = ChainServices(loop, loop.time_ns)
        signature = configuration.signature_of(message, Path(), 1)
        chain = self.chains[name] = await open_chain(model, signature, services)
        chain.rows = model.rows

    def _chain(self, name):
        if name not in self.chains:
            raise not_found(f"Request for unknown model: '{name}' is not found")
        return self.chains[name]

    def infer_step(self, request):
        self.asked.append(request)
        return self._chain(request.model_name).handler(request)

    def traced(self, request, name, version, to):
        self.turns.append(name)
        return to(request)

    def signature(self, name, version=-1):
        return self._chain(name).signature

    def takes_device(self, name, version=-1):
        return self._chain(name).takes_device

    def content(self, name, version=-1):
        return name

    def is_ready(self, name, version=-1):
        return self._chain(name).ready

    async def check(self, name, version=-1):
        return await self._chain(name).check()

    def calls(self, name):
        """Return how many requests the model has got."""
        return sum(request.model_name == name for request in self.asked)


@pytest.fixture
async def models():
    found = Models()
    await found.add("halve", "x FP32[-1] -> y FP32[-1]", lambda x: {"y": x / 2})
    await found.add(
        "judge",
        "x FP32[-1] -> score FP32[1], label BYTES[1], flag BOOL[1]",
        lambda x: {
            "score": np.array([x.max()], np.float32),
            "label": np.array([b"cat" if x.max() > 0 else b"dog"], object),
            "flag": np.array([x.max() > 0]),
        },
    )
    await found.add("broken", "x FP32[-1] -> y FP32[-1]", lambda x: ValueError("out of order"))
    await found.add(
        "each",
        "x FP32[-1] -> y FP32[-1]",
        lambda x: [{"y": np.array([value], np.float32)} for value in x],
        decoupled=True,
    )
    await found.add(
        "either",
        "a FP32[-1]?, b FP32[-1]? -> y FP32[-1]",
        lambda **given: {"y": np.concatenate(list(given.values()))},
    )
    return found


@pytest.fixture
def opened(models):
    """Open the ensemble of a text of config.pbtxt: `await opened(text)` is its chain."""

    async def opened(text):
        config, signature = parsed(text)
        loop = asyncio.get_running_loop()
        host = SimpleNamespace(
            loop=loop, models=models, cache=None, statistics_of=lambda config: Statistics()
        )
        return await open_ensemble(config, signature, host, "")

    return opened


@pytest.fixture
def refusal(opened):
    """Return the text with which a load refuses an ensemble."""

    async def refusal(text):
        with pytest.raises(CoreError) as caught:
            await opened(text)
        assert caught.value.kind.name == "INVALID"
        return caught.value.message

    return refusal


def ask(chain, *values, shape=None, **fields):
    """Send FP32 values; return the Reply."""
    array = np.array(values, np.float32).reshape(shape or len(values))
    return chain.handler(InferenceRequest("e", {"x": Tensor.of("x", array)}, **fields))


async def answer(chain, *values, **fields):
    """Send FP32 values; return output → list of its values."""
    response = await ask(chain, *values, **fields)
    return {tensor.name: tensor.array.ravel().tolist() for tensor in response.outputs}


async def error_of(reply):
    """Await what must fail; return "KIND: text"."""
    with pytest.raises(CoreError) as caught:
        await reply
    return f"{caught.value.kind.name}: {caught.value.message}"
