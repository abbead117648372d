"""Servers in this process whose models answer with the number of their version."""

import asyncio
import threading
import time

import core_traffic
import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError
from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core.tensor import Tensor

CONFIG = """
backend: "versions"
version_policy { all {} }
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
X = 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'


def parameter(text):
    """The parameter `traffic` in config.pbtxt."""
    return f"parameters {{ key: \"traffic\" value {{ string_value: '{text}' }} }}\n"


class Answer(core.ModelInstance):
    """Returns its version; fails for -1, waits for -2 until the backend is released."""

    def execute(self, batch):
        x = batch["x"]
        if (x == -1).any():
            raise RuntimeError("it cannot")
        if (x == -2).any():
            assert self.model.backend.released.wait(10)
        return {"y": np.full_like(x, self.model.version)}


class Stream(core.ModelInstance):
    """Returns its version as often as x says."""

    def stream(self, request):
        for _ in range(int(request.inputs["x"].array.flat[0])):
            yield {"y": np.array([self.model.version], np.float32)}


class Echo(core.ModelInstance):
    """Returns x: in version 3 with 1e-3 more in the last element, in 4 an error, in 5 when it is released."""

    def execute(self, batch):
        y = batch["x"].copy()
        if self.model.version == 3:
            y[-1] += np.float32(1e-3)
        if self.model.version == 4:
            raise RuntimeError("it cannot")
        if self.model.version == 5:
            assert self.model.backend.released.wait(10)
        return {"y": y}


class Models:
    """The model repository of a test."""

    def __init__(self, path):
        self.path = path

    def write(self, name="m", versions=(1, 2), config=CONFIG, more="", inputs="x"):
        """Write a model. Its files say which inputs it has: FP32 of shape [1], by names between blanks."""
        (self.path / name).mkdir(parents=True, exist_ok=True)
        (self.path / name / "config.pbtxt").write_text(config + more)
        for version in versions:
            (self.path / name / str(version)).mkdir(exist_ok=True)
            (self.path / name / str(version) / "model.txt").write_text(inputs)


def complete(config, path, backend):
    for name in (path / "model.txt").read_text().split():
        config.input.add(name=name, data_type="TYPE_FP32", dims=config.output[0].dims)


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path / "models")


@pytest.fixture
async def serve(models):
    """Start a server in mode explicit with all models, until the end of the test."""
    servers = []
    backends = {
        "versions": core.Backend(instance=Answer, complete=complete),
        "streams": core.Backend(instance=Stream, complete=complete),
        "echo": core.Backend(instance=Echo, complete=complete),
    }
    released = threading.Event()
    for each in backends.values():
        each.released = released

    async def start(**options):
        given = {
            "model_repository": [str(models.path)],
            "model_control_mode": "explicit",
            "load_model": ["*"],
            "exit_on_error": False,
            "allow_metrics": True,
            **options,
        }
        headers = {name: given.pop(name) for name in list(given) if name.endswith("_pattern")}
        made = Options.defaults(**given)
        made.added.update(headers)
        server = InferenceServer(made, find_backend=backends.get)
        plugins.ask("core_server_starting", server=server)
        servers.append(server)
        await server.start()
        server.released = released
        return server

    yield start
    released.set()
    for server in servers:
        assert await server.stop(30) == 0
        plugins.tell("core_server_stopping", server=server)
    assert not [each for each in servers if id(each.models) in core_traffic._traffic]


def ask(server, name="m", value=1.0, shape=(1,), **fields):
    """Send a request; return its Reply."""
    x = Tensor.of("x", np.full(shape, value, np.float32))
    return server.models.infer(InferenceRequest(name, {"x": x}, **fields))


async def version_of(server, name="m", value=1.0, **fields):
    """Send a request; return the version that has answered."""
    response = await ask(server, name, value, **fields)
    assert response.outputs[0].array.tolist() == [response.model_version]
    return response.model_version


async def shares(server, count=200, name="m", **fields):
    """Send requests one after the other; return version → number of its answers."""
    found = [await version_of(server, name, **fields) for _ in range(count)]
    return {number: found.count(number) for number in sorted(set(found))}


async def text_of_error(work):
    """Await what must fail with a CoreError; return "KIND: text"."""
    with pytest.raises(CoreError) as caught:
        await work
    return f"{caught.value.kind.name}: {caught.value.message}"


def area(server):
    """The control operations of the plugin."""
    return server.control.areas["traffic"]


async def until(condition, limit_s=10.0):
    """Wait until a condition holds."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)
