"""Servers over repositories in emulated clouds. Each test has a different path in one bucket."""

import asyncio
import itertools
import os
import shutil
import tempfile

import numpy as np
import pytest
from process.conftest import _launcher, launch

import core
from core import plugins
from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core.tensor import Tensor

from .emulators import S3, Azure, Google

__all__ = ["_launcher", "launch"]

CONFIG = """
backend: "scaler"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_", "STORAGE_", "TRITON_")
_paths = itertools.count(1)


def pytest_asyncio_loop_factories(config, item):
    return {"real-time": asyncio.SelectorEventLoop}


@pytest.fixture(scope="session", params=[S3, Google, Azure], ids=["s3", "gs", "as"])
def emulator(request):
    """The running emulator of one cloud; the tests run once for each. Azure is skipped without azurite."""
    if request.param is Azure and shutil.which(Azure.program) is None:
        pytest.skip(f"{Azure.program} is not installed (npm install azurite)")
    made = request.param()
    yield made
    made.close()


class Shelf:
    """The model repository of one test, at a path of its own in the bucket of an emulator.

    emulator   emulator of the cloud in which it is
    """

    def __init__(self, emulator):
        self.emulator = emulator
        self.path = f"repository-{next(_paths)}"
        self.url = emulator.url(self.path)

    def put(self, path, content):
        self.emulator.put(f"{self.path}/{path}", content.encode())

    def put_in_parts(self, path, content):
        self.emulator.put_in_parts(f"{self.path}/{path}", content.encode())

    def delete(self, path):
        self.emulator.delete(f"{self.path}/{path}")

    def model(self, name, factor, version=1, config=CONFIG):
        if config:
            self.put(f"{name}/config.pbtxt", config)
        self.put(f"{name}/{version}/factor.txt", factor)

    def fetched(self):
        """Return the sorted paths of the objects that were fetched since the last call, and forget them."""
        found = [each.removeprefix(f"{self.path}/") for each in self.emulator.fetched()]
        self.emulator.recorder.requests.clear()
        return sorted(found)


@pytest.fixture
def shelf(emulator, monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(_VARIABLES):
            monkeypatch.delenv(name)
    for name, value in emulator.environment.items():
        monkeypatch.setenv(name, value)
    # No server outside of this machine may get requests for credentials.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    emulator.recorder.requests.clear()
    emulator.recorder.spoil = lambda request: None
    yield Shelf(emulator)
    emulator.recorder.spoil = lambda request: None
    assert list(temporary.iterdir()) == []


class Scaler(core.Model):
    """y = factor · x. The factor is the text of factor.txt, in the version's folder or in the model's."""

    def load(self):
        self.backend.files.append(
            sorted(
                str(each.relative_to(self.directory))
                for each in self.directory.rglob("*")
                if each.is_file()
            )
        )
        self.factor = np.float32((self.path / "factor.txt").read_text())


class Scale(core.ModelInstance):
    def execute(self, batch):
        return {"y": batch["x"] * self.model.factor}


@pytest.fixture
def backend():
    """The backend of Scaler.

    files   for each load, the sorted paths of the files in the model's folder
    """
    scaler = core.Backend(model=Scaler, instance=Scale)
    scaler.name = "scaler"
    scaler.files = []
    return scaler


@pytest.fixture
async def serve(shelf, backend, monkeypatch):
    """A function (**options) that starts a server over the shelf and returns it; it stops after the test.

    A poll that finds a change polls again at once.
    """
    monkeypatch.setattr("core.lifecycle.polling.REST_S", 0.0)
    servers = []

    async def start(**options):
        options.setdefault("model_repository", [shelf.url])
        options.setdefault("exit_on_error", False)
        options.setdefault("repository_poll_secs", 3600)
        server = InferenceServer(
            Options.defaults(**options),
            find_backend=lambda name: backend if name == "scaler" else plugins.backend(name),
        )
        servers.append(server)
        await server.start()
        return server

    yield start
    for server in servers:
        assert await server.stop(30) == 0


@pytest.fixture
def factor():
    """A function (server, name) that asks a model for its factor, and returns it."""

    async def ask(server, name="m"):
        x = Tensor.of("x", np.array([1.0], np.float32))
        answer = await server.models.infer(InferenceRequest(name, {"x": x}))
        return answer.output("y").array[0]

    return ask
