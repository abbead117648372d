"""A whole server with all its frontends, on a loop in a thread; tests are clients of its machine."""

import asyncio
import gc
import importlib.util
import os
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import uvloop
from core_testing.fake_device import FakeDevice
from core_testing.fake_runtime import FakeRuntime

import core
from core import plugins
from core.options import Options
from core.process import frontends_of
from core.server import InferenceServer
from frontends.shared.memory import MemoryControl
from frontends.shared.memory.cuda import CudaRegions

IO = """
backend: "test"
input [ {{ name: "x" data_type: {0} dims: [ -1 ] }} ]
output [ {{ name: "y" data_type: {0} dims: [ -1 ] }} ]
"""
MODELS = {
    "double": IO.format("TYPE_FP32"),
    "words": IO.format("TYPE_STRING"),
    "watch": IO.format("TYPE_FP32"),
}
ENGINES = ["grpcio", "native"]
if importlib.util.find_spec("frontends.grpc.native.connection") is None:  # built without libnghttp2
    ENGINES.remove("native")


class Instance(core.ModelInstance):
    """double: y = 2 x. words: y = x. watch: y = x before and after the event `look_again`, from the same
    memory."""

    def execute(self, batch):
        backend, x = self.model.backend, batch["x"]
        if self.model.name == "words":
            return {"y": x}
        if self.model.name == "watch":
            before = float(x[0])
            backend.address = x.__array_interface__["data"][0]
            backend.seen.set()
            backend.look_again.wait(30)
            return {"y": np.array([before, x[0]], np.float32)}
        return {"y": x * 2}


class Site:
    """A started server. `run` waits for a coroutine on its loop."""

    def __init__(self, loop, repository, options, played_device):
        self._played_device = played_device
        self.loop = loop
        self.backend = core.Backend(instance=Instance)
        self.backend.name = "test"
        self.backend.seen, self.backend.look_again = threading.Event(), threading.Event()
        self.options = Options.defaults(
            **{
                "model_repository": [str(repository)],
                "http_address": "127.0.0.1",
                "grpc_address": "127.0.0.1",
                "allow_metrics": False,
                "http_port": 0,
                "grpc_port": 0,
                "metrics_port": 0,
                **options,
            }
        )
        self.frontends = {}

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    async def start(self):
        self.server = InferenceServer(self.options, find_backend=lambda name: self.backend)
        self.memory = MemoryControl.of(self.server)
        self.runtime = FakeRuntime(FakeDevice())
        if self._played_device:
            self.memory.cuda = CudaRegions(self.memory.regions, (0,), lambda: self.runtime)
        await self.server.start()
        for each in frontends_of(self.server):
            await each.start()
            self.frontends[each.name] = each

    async def stop(self):
        await asyncio.gather(*(each.stop(5) for each in self.frontends.values()))
        await self.server.stop(5)

    def url(self, name):
        return f"127.0.0.1:{self.frontends[name].port}"

    def lent(self):
        """Return the number of regions that clients have sent."""

        async def count():
            return sum(each.kind == "lent" for each in self.memory.regions._regions.values())

        return self.run(count())

    def nothing_lent(self):
        """Wait until the server has noticed the disconnects of clients."""
        ended = threading.Event()
        return any(self.lent() == 0 or ended.wait(0.02) for _ in range(500))


@pytest.fixture(scope="module")
def loop():
    found = uvloop.new_event_loop()
    thread = threading.Thread(target=found.run_forever)
    thread.start()
    yield found
    found.call_soon_threadsafe(found.stop)
    thread.join()
    found.close()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    for name, config in MODELS.items():
        (path / name / "1").mkdir(parents=True)
        (path / name / "config.pbtxt").write_text(config)
    return path


@pytest.fixture(scope="module")
def serving(loop, repository):
    """Serve as long as a block lasts.

    played_device   whether memory of GPUs is that of a device that is not there
    """

    @contextmanager
    def serve(played_device=True, **options):
        site = Site(loop, repository, options, played_device)
        site.run(site.start())
        try:
            yield site
        finally:
            site.run(site.stop())

    return serve


@pytest.fixture(scope="module")
def site(serving, tmp_path_factory):
    """A server that takes memory in every way."""
    path = tmp_path_factory.mktemp("run") / "memory.sock"
    with serving(allow_client_shm=True, shared_memory_socket=str(path)) as found:
        found.socket = str(path)
        yield found


@pytest.fixture
def nothing_left(site):
    """Check that after the test /dev/shm has no file of a pool, and the server no region."""
    yield
    gc.collect()
    # core-pool-<process>-…: of this process, or of one that has ended; others may be testing too.
    left = [name for name in os.listdir("/dev/shm") if name.startswith("core-pool-")]
    owners = {int(name.split("-")[2]) for name in left}
    assert [
        each for each in owners if each == os.getpid() or not os.path.exists(f"/proc/{each}")
    ] == []
    assert site.nothing_lent()
    assert site.memory.status() == []


assert (
    "memory" in plugins.frontends()
)  # else the package was installed before there was such a frontend
