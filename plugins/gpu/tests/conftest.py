"""The path of the simulated machine beside the tests, and servers on such machines."""

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pytest
from core_gpu import server_gpus
from core_gpu.driver import CudaDriver
from core_gpu.memory import GpuMemory
from played_machine import PlayedCuda, PlayedNvml

import core
from core import plugins
from core.options import Options
from core.server import InferenceServer

CONFIG = """
backend: "twice"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


class Loads(core.Model):
    """Takes 100 bytes of each GPU of its instances, and the context of the GPU, as frameworks do."""

    def load(self):
        self.gpus = [self.backend.machine[n] for g in self.config.instance_group for n in g.gpus]
        for gpu in self.gpus:
            gpu.used += 100
            gpu.in_use = True

    def unload(self):
        for gpu in self.gpus:
            gpu.used -= 100


class Twice(core.ModelInstance):
    def execute(self, batch):
        return {"y": batch["x"] * 2}


@pytest.fixture
def repository(tmp_path):
    """Write models: `repository(m="instance_group { kind: KIND_GPU }")`. Return the folder."""

    def write(**models):
        for name, groups in models.items():
            (tmp_path / name / "1").mkdir(parents=True, exist_ok=True)
            (tmp_path / name / "1" / "model.txt").write_text("")
            (tmp_path / name / "config.pbtxt").write_text(CONFIG + groups)
        return str(tmp_path)

    return write


@pytest.fixture
async def start():
    """Start a server with one backend in mode explicit: `await start(backend, folder, **options)`."""
    servers = []

    async def begin(backend, folder, **options):
        made = Options.defaults(
            model_repository=[folder], model_control_mode="explicit", load_model=["*"]
        )
        made = made.changed(exit_on_error=False)
        made.added.update(options)
        backend.name = "twice"
        server = InferenceServer(made, find_backend={"twice": backend}.__getitem__)
        plugins.ask("core_server_starting", server=server)
        servers.append(server)
        await server.start()
        return server

    yield begin
    for server in servers:
        assert await server.stop(30) == 0
        plugins.tell("core_server_stopping", server=server)


@pytest.fixture
async def serve(monkeypatch, start):
    """Start a server on a played machine: `await serve(gpus, folder, links=None, **options)`."""

    async def begin(gpus, folder, links=None, **options):
        cuda, nvml = PlayedCuda(gpus, links), PlayedNvml(gpus)
        played = partial(
            server_gpus.open_gpus,
            visible=lambda: tuple(range(len(gpus))),
            driver=lambda: CudaDriver(cuda),
            memory=lambda driver: GpuMemory(driver.uuid, lambda: nvml),
        )
        monkeypatch.setattr(server_gpus, "open_gpus", played)
        backend = core.Backend(model=Loads, instance=Twice)
        backend.machine = gpus
        return await start(backend, folder, **options)

    return begin


@pytest.fixture
def states():
    """Return name → "READY", or why a model is not loaded."""

    async def read(server):
        index = await server.control.repository.index()
        return {each["name"]: each.get("reason") or each["state"] for each in index}

    return read
