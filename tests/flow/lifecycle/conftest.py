"""A whole server over model folders, on a loop of real time: loads and executions are real threads."""

import asyncio
import threading

import numpy as np
import pytest

import core
from core import plugins
from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core.tensor import Tensor

CONFIG = """
backend: "scaler"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def pytest_asyncio_loop_factories(config, item):
    return {"real-time": asyncio.SelectorEventLoop}


class Scaler(core.Model):
    """y = factor · x; the factor is the text of model.txt."""

    def load(self):
        self.factor = np.float32((self.path / "model.txt").read_text())


class Scale(core.ModelInstance):
    """Executes on its own thread. A negative first value waits until the backend is released."""

    def execute(self, batch):
        if batch["x"].flat[0] < 0:
            self.model.backend.waiting.set()
            assert self.model.backend.released.wait(10)
        return {"y": batch["x"] * self.model.factor}


def complete(config, path, backend):
    """The config of a model that has none."""
    if not config.input:
        config.input.add(name="x", data_type=11, dims=[-1])
        config.output.add(name="y", data_type=11, dims=[-1])
        config.max_batch_size = 4


def find(backend):
    """Where the InferenceServer finds backends: the test's own, and those that are installed."""
    return lambda name: backend if name == "scaler" else plugins.backend(name)


@pytest.fixture
def backend():
    scaler = core.Backend(model=Scaler, instance=Scale, complete=complete)
    scaler.name = "scaler"
    scaler.waiting, scaler.released = threading.Event(), threading.Event()
    return scaler


class Models:
    """The model repository of a test."""

    def __init__(self, path):
        self.path = path

    def write(self, name, factor, version=1, config=CONFIG):
        (self.path / name / str(version)).mkdir(parents=True, exist_ok=True)
        if config:
            (self.path / name / "config.pbtxt").write_text(config)
        (self.path / name / str(version) / "model.txt").write_text(factor)


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path)


@pytest.fixture
async def serve(models, backend):
    """Start an InferenceServer in mode explicit; in the end it stops and no thread is left."""
    servers = []
    before = set(threading.enumerate())

    async def start(**options):
        options.setdefault("model_control_mode", "explicit")
        options.setdefault("model_repository", [str(models.path)])
        made = Options.defaults(**options)
        server = InferenceServer(made, find_backend=find(backend))
        servers.append(server)
        await server.start()
        return server

    yield start
    backend.released.set()
    for server in servers:
        assert await server.stop(30) == 0
    await asyncio.get_running_loop().shutdown_default_executor()
    assert set(threading.enumerate()) <= before


@pytest.fixture
def ask():
    def ask(server, value=1.0, name="m"):
        x = Tensor.of("x", np.array([value], np.float32))
        return server.models.infer(InferenceRequest(name, {"x": x}))

    return ask
