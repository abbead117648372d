"""A manager over model folders, with a backend in this process that records its calls.

The text of a model controls it: a number is its factor (y = factor · x), "fail …" makes load() raise,
"fail twice" only the first two times, "close …" makes unload() raise.
"""

import asyncio
import threading

import numpy as np
import pytest

import core
from core.errors import CoreError
from core.lifecycle import ModelManager
from core.lifecycle.polling import REST_S
from core.options import Options
from core.request import InferenceRequest
from core.tensor import Tensor

CONFIG = """
backend: "test"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


class Scaler(core.Model):
    def load(self):
        self.backend.note("load", self)
        if self.backend.gate is not None:
            assert self.backend.gate.wait(10)
        text = (self.path / "model.txt").read_text()
        tries = self.backend.calls.count(f"load {self.name}:{self.version}")
        if text.startswith("fail") and not (text == "fail twice" and tries > 2):
            raise RuntimeError(text)
        self.text = text
        self.factor = 1.0 if text.startswith(("close", "fail")) else float(text)

    def unload(self):
        self.backend.note("unload", self)
        if self.text.startswith("close"):
            raise RuntimeError(self.text)


class Scale(core.ModelInstance):
    def open(self):
        self.model.backend.note("open", self.model)

    async def execute(self, batch):
        await self.model.backend.go.wait()
        return {"y": batch["x"] * np.float32(self.model.factor)}

    def close(self):
        self.model.backend.note("close", self.model)


class RecordingBackend(core.Backend):
    """calls     "<event> <name>:<version>" in the order of events
    go        an asyncio.Event; executions wait while it is cleared
    gate      a threading.Event that loads wait for, or None
    """

    def __init__(self):
        super().__init__(model=Scaler, instance=Scale)
        self.name = "test"
        self.calls = []
        self.go = asyncio.Event()
        self.go.set()
        self.gate = None

    def note(self, event, model=None):
        self.calls.append(f"{event} {model.name}:{model.version}" if model else event)

    def open(self):
        self.note("open backend")

    def close(self):
        self.note("close backend")


class Ticker:
    """The manager's clock: it advances on command of a test, or at each look if `flows`.

    between   called between the two looks of a poll
    """

    def __init__(self):
        self.now = 0.0
        self.flows = False
        self.between = lambda: None
        self._sleeping = asyncio.Event()
        self._wake = asyncio.Event()

    async def sleep(self, seconds):
        if self.flows:
            self.now += seconds
            await asyncio.sleep(0.001)  # real threads make progress
            return
        self.now += seconds
        if seconds == REST_S:
            self.between()
            return
        self._sleeping.set()
        await self._wake.wait()
        self._wake.clear()

    async def tick(self):
        """Let the poller look once, and wait until it has."""
        await self._sleeping.wait()
        self._sleeping.clear()
        self._wake.set()
        await self._sleeping.wait()


class Managed(ModelManager):
    """A manager that is also the interface for models that call other models."""

    def content(self, name, version=-1):
        return self.resolve(name, version).content

    def signature(self, name, version=-1):
        return self.resolve(name, version).signature

    def takes_device(self, name, version=-1):
        return self.resolve(name, version).chain.takes_device

    def is_ready(self, name, version=-1):
        return self.resolve(name, version).chain.ready

    def infer(self, request):
        found = self.resolve(request.model_name, request.model_version)
        return found.chain.handler(request)

    infer_step = infer  # of an ensemble; nothing is traced here

    def ask(self, name="m", value=1.0, version=-1):
        """The Reply to a request with one number."""
        x = Tensor.of("x", np.array([value], np.float32))
        return self.infer(InferenceRequest(name, {"x": x}, model_version=version))

    async def factor(self, name="m", version=-1):
        """Ask the model for its factor."""
        return (await self.ask(name, 1.0, version)).output("y").array[0]

    def entries(self, name):
        """{version: state} in the index."""
        found = [each for each in self.index(False) if each["name"] == name]
        return {int(each["version"]): each["state"] for each in found if "version" in each}

    def reason(self, name, version=1):
        """Return the reason in the index for a version."""
        found = {each.get("version"): each for each in self.index(False) if each["name"] == name}
        return found[str(version)].get("reason", "")

    async def settled(self):
        """Wait until everything that leaves has left."""
        while leaving := [task for model in self._models.values() for task in model.leaving]:
            await asyncio.wait(leaving)


@pytest.fixture
def config():
    return CONFIG


@pytest.fixture
async def backend():
    return RecordingBackend()


@pytest.fixture
async def ticker():
    return Ticker()


@pytest.fixture
async def manage(folder, backend, ticker):
    """Make a manager, not yet started; each one is stopped at the end and must leave no files."""
    managers = []
    threads = set(threading.enumerate())

    def make(mode="explicit", **options):
        options.setdefault("model_repository", [str(folder.path)])
        made = Managed(
            Options.defaults(model_control_mode=mode, **options),
            asyncio.get_running_loop(),
            find_backend={"test": backend}.__getitem__,
            sleep=ticker.sleep,
            clock=lambda: ticker.now,
        )
        made.provide(made)
        managers.append(made)
        return made

    yield make
    ticker.flows = True
    backend.go.set()
    if backend.gate is not None:
        backend.gate.set()
    for made in managers:
        assert await made.stop(1e6) == 0
    await asyncio.get_running_loop().shutdown_default_executor()
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)  # an instance's thread reports its close a moment before it ends
    assert set(threading.enumerate()) <= threads
    assert backend.calls.count("open backend") == backend.calls.count("close backend")


@pytest.fixture
def refusal():
    """The CoreError with which something that is awaited is refused."""

    async def refusal(awaitable):
        with pytest.raises(CoreError) as error:
            await awaitable
        return error.value

    return refusal


@pytest.fixture
async def started(manage):
    async def start(mode="explicit", **options):
        manager = manage(mode, **options)
        await manager.start()
        return manager

    return start
