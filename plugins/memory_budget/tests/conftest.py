"""Servers whose models take as many bytes as their files say, and a loop of virtual time."""

import asyncio
import threading
import time

import core_memory_budget as plugin
import numpy as np
import pytest
from flow.conftest import VirtualTimeLoop

import core
from core import plugins
from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core.tensor import Tensor

VIRTUAL = ("test_waiting.py", "test_reservations.py")
ABCD = ("a", "b", "c", "d")

CONFIG = """
backend: "sized"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


def pytest_asyncio_loop_factories(config, item):
    if item.path.name in VIRTUAL:
        return {"virtual-time": VirtualTimeLoop}
    return {"real-time": asyncio.SelectorEventLoop}


class Sized(core.Model):
    """Takes as many bytes as the file model.txt says, on the device that it says: "1000" or "1000 gpu"."""

    def load(self):
        backend = self.backend
        backend.loads.append(self.name)
        if (gate := backend.gates.get(self.name)) is not None:
            backend.waits.set()
            assert gate.wait(10)
        text = (self.path / "model.txt").read_text()
        if text == "broken":
            raise RuntimeError("the file is broken")
        size, _, device = text.partition(" ")
        kinds = ("GPU", "CPU") if device else ("CPU",)
        self.used = tuple(
            core.MemoryUsage(kind, 0, int(size) if kind == kinds[0] else 0) for kind in kinds
        )
        with backend.lock:
            backend.held += int(size)
            backend.most = max(backend.most, backend.held)

    def unload(self):
        if used := getattr(self, "used", ()):
            with self.backend.lock:
                self.backend.held -= used[0].byte_size

    def memory_usage(self):
        return self.used


class Double(core.ModelInstance):
    """Returns 2·x. A negative x waits until the backend is released."""

    def execute(self, batch):
        if batch["x"].flat[0] < 0:
            self.model.backend.executes.set()
            assert self.model.backend.released.wait(10)
        return {"y": batch["x"] * 2}


@pytest.fixture
def backend():
    """`held` and `most`: bytes of its models now, and at the highest moment."""
    sized = core.Backend(model=Sized, instance=Double)
    sized.name = "sized"
    sized.loads, sized.gates, sized.lock = [], {}, threading.Lock()
    sized.held = sized.most = 0
    sized.waits, sized.executes, sized.released = (threading.Event() for _ in range(3))
    return sized


class Models:
    """The model repository of a test."""

    def __init__(self, path):
        self.path = path

    def write(self, name, size=1000, version=1, **parameters):
        """Write a model; `pin="true"` is its parameter memory.pin. Its estimate is its size."""
        given = {"estimate": str(size).split()[0], **parameters}
        if str(size).endswith("gpu"):
            given["estimate"] = f"gpu0:{given['estimate']}"
        self.config(name, CONFIG + entries(given))
        (self.path / name / str(version)).mkdir(parents=True, exist_ok=True)
        (self.path / name / str(version) / "model.txt").write_text(str(size))

    def ensemble(self, name, *steps, **parameters):
        tensors = ["x", *(f"t{number}" for number in range(1, len(steps))), "y"]
        rows = ", ".join(
            f'{{ model_name: "{step}" model_version: -1 input_map {{ key: "x" value: "{source}" }} '
            f'output_map {{ key: "y" value: "{target}" }} }}'
            for step, source, target in zip(steps, tensors, tensors[1:], strict=False)
        )
        text = CONFIG.replace('backend: "sized"', 'platform: "ensemble"')
        self.config(name, f"{text} ensemble_scheduling {{ step [ {rows} ] }} {entries(parameters)}")
        (self.path / name / "1").mkdir(parents=True, exist_ok=True)

    def config(self, name, text):
        (self.path / name).mkdir(parents=True, exist_ok=True)
        (self.path / name / "config.pbtxt").write_text(text)


def entries(parameters):
    return "\n".join(
        f'parameters {{ key: "memory.{name}" value {{ string_value: "{value}" }} }}'
        for name, value in parameters.items()
    )


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path)


@pytest.fixture
async def serve(models, backend):
    """Start a server with a budget of 3500 bytes in mode none; it stops after the test."""
    servers = []

    async def start(**options):
        given = {
            "model_repository": [str(models.path)],
            "memory_budget": ["3500"],
            "load_on_request": True,
            "allow_metrics": True,
            "exit_on_error": False,
            **options,
        }
        own = {each for each in given if hasattr(plugin.MemoryOptions(), each)}
        made = Options.defaults(**{k: v for k, v in given.items() if k not in own})
        made.added.update({k: v for k, v in given.items() if k in own})
        find = {"sized": backend}
        server = InferenceServer(
            made, find_backend=lambda name: find.get(name) or plugins.backend(name)
        )
        plugins.ask("core_server_starting", server=server)
        servers.append(server)
        await server.start()
        return server

    yield start
    backend.released.set()
    for gate in backend.gates.values():
        gate.set()
    for server in servers:
        assert await server.stop(30) == 0
        plugins.tell("core_server_stopping", server=server)
    assert backend.held == 0


@pytest.fixture
def ask():
    """Send a request: `reply = ask(server, "m")`; `await reply` returns the response."""

    def send(server, name, value=1.0, **fields):
        x = Tensor.of("x", np.array([value], np.float32))
        return server.models.infer(InferenceRequest(name, {"x": x}, **fields))

    return send


@pytest.fixture
def states():
    """Return name → state (and reason) as the index shows them."""

    async def read(server):
        index = await server.control.repository.index()
        return {
            each["name"]: each["state"] + (f" {each['reason']}" if each.get("reason") else "")
            for each in index
        }

    return read


async def answers(server, ask, *names):
    """Ask each model for the double of 3."""
    for name in names:
        response = await ask(server, name, 3.0)
        assert response.outputs[0].array.tolist() == [6.0]


async def until(condition, limit_s=10.0):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


def account(server):
    return plugin._governors[id(server.models)].account


def loaded(server):
    return sorted(each.name for each in server.manager.versions() if each.state == "READY")
