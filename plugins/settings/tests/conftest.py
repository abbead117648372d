"""Servers in this process with one kind of model: it returns its input, and may hold a request back."""

import asyncio
import threading

import core_settings
import numpy as np
import pytest

import core

# Now: the tests of plugins forget modules that were imported first within them, and areas are made once.
import frontends.http.frontend  # noqa: F401
from core import plugins
from core.errors import CoreError
from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core.tensor import Tensor

CONFIG = """
backend: "echo"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
BATCHING = "dynamic_batching { max_queue_delay_microseconds: 100 }\n"


class Echo(core.ModelInstance):
    """y = x; waits for -1 until the backend is released. Notes the rows of each execution."""

    def execute(self, batch):
        self.model.backend.executed.append(batch.rows)
        if (batch["x"] == -1).any():
            assert self.model.backend.released.wait(10)
        return {"y": batch["x"]}


class Models:
    """The model repository of a test."""

    def __init__(self, path):
        self.path = path

    def write(self, name="m", config=CONFIG + BATCHING, versions=(1,)):
        for version in versions:
            (self.path / name / str(version)).mkdir(parents=True, exist_ok=True)
        (self.path / name / "config.pbtxt").write_text(config)


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path / "models")


@pytest.fixture
async def serve(models):
    """Start a server in mode explicit with all models, until the end of the test."""
    servers = []
    backend = core.Backend(instance=Echo)
    backend.executed, backend.released = [], threading.Event()

    async def start(**options):
        added = {name: options.pop(name) for name in list(options) if name.startswith("settings_")}
        given = {
            "model_repository": [str(models.path)],
            "model_control_mode": "explicit",
            "load_model": ["*"],
            "exit_on_error": False,
            **options,
        }
        made = Options.defaults(**given)
        made.added.update(added)
        server = InferenceServer(made, find_backend={"echo": backend}.get)
        plugins.ask("core_server_starting", server=server)
        servers.append(server)
        await server.start()
        server.backend = backend
        return server

    yield start
    backend.released.set()
    for server in servers:
        assert await server.stop(30) == 0
        plugins.tell("core_server_stopping", server=server)
    assert not [each for each in servers if id(each.models) in core_settings._settings]


def area(server):
    """Return the control operations on live settings."""
    return server.control.areas["model_settings"]


def ask(server, name="m", value=1.0, rows=1, **fields):
    """Send a request; return its Reply."""
    x = Tensor.of("x", np.full((rows, 1), value, np.float32))
    return server.models.infer(InferenceRequest(name, {"x": x}, **fields))


async def text_of_error(work):
    """Return the text of the CoreError that awaiting `work` raises."""
    with pytest.raises(CoreError) as caught:
        await work
    return caught.value.message


def delay(us):
    return {"dynamic_batching": {"max_queue_delay_microseconds": us}}


async def until(holds):
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it does not hold after 5 s")
