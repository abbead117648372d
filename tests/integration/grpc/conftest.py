"""A whole server behind real gRPC, on a loop in a separate thread; tests are its clients."""

import asyncio
import importlib.util
import threading
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc as client_library
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc
import uvloop

import core
from core.options import Options
from core.server import InferenceServer
from frontends.grpc.extra_methods import GrpcMethods
from frontends.grpc.frontend import GrpcFrontend

NATIVE = "frontends.grpc.native.connection"
IO = """
backend: "test"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
MODELS = {
    "echo": IO,
    "gated": IO,
    "broken": IO,
    "many": IO + "model_transaction_policy { decoupled: true }",
}


class Instance(core.ModelInstance):
    """echo answers its input, gated when the gate opens, broken raises, many answers each element."""

    def execute(self, batch):
        model = self.model
        if model.name == "many":
            for i, request in enumerate(batch.requests):
                for value in request.inputs["x"].array:
                    batch.respond(i, {"y": np.array([value])}, final=False)
                batch.finish(i)
            return None
        if model.name == "broken":
            raise RuntimeError("long story: " + "x" * 50_000)
        if model.name == "gated":
            self._wait(batch.requests[0])
        return {"y": batch["x"]}

    def _wait(self, request):
        gate = self.model.backend.gate
        gate.running.set()
        while not gate.open.wait(0.01):
            if request.cancelled:
                gate.cancelled.set()
                return


class Gate:
    """running, cancelled: what happened to a request of the model `gated`; open: it may go on."""

    def __init__(self):
        self.running = threading.Event()
        self.cancelled = threading.Event()
        self.open = threading.Event()


class LoopThread:
    """An event loop in a thread; `run` waits for a coroutine on it."""

    def __init__(self, loop):
        self.loop = loop
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def begin(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine):
        return self.begin(coroutine).result(60)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


# Every test of this folder runs for each: what speaks HTTP/2, and the loop below it.
ENGINES = {
    "grpcio": ("grpcio", asyncio.new_event_loop),
    "native": ("native", uvloop.new_event_loop),
    "native on asyncio": ("native", asyncio.new_event_loop),
}


@pytest.fixture(scope="session", params=ENGINES)
def engine(request):
    """The value of --grpc-engine, and what makes its loop."""
    name, new_loop = ENGINES[request.param]
    if name == "native" and importlib.util.find_spec(NATIVE) is None:
        pytest.skip("the engine on nghttp2 was not built: libnghttp2-dev was not there")
    return name, new_loop


@pytest.fixture(scope="session")
def loop_thread(engine):
    thread = LoopThread(engine[1]())
    thread.engine = engine[0]
    yield thread
    thread.close()


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    for name, config in MODELS.items():
        (path / name / "1").mkdir(parents=True)
        (path / name / "config.pbtxt").write_text(config)
    return path


class Served:
    """A started server with its gRPC frontend; `methods` of the options are added to its port."""

    def __init__(self, loop_thread, repository, options):
        self._methods = options.pop("methods", ())
        self.loop_thread = loop_thread
        self.gate = Gate()
        self.backend = core.Backend(instance=Instance)
        self.backend.name = "test"
        self.backend.gate = self.gate
        self.options = Options.defaults(
            model_repository=[str(repository)],
            **{
                "grpc_address": "127.0.0.1",
                "grpc_port": 0,
                "grpc_engine": loop_thread.engine,
                **options,
            },
        )
        loop_thread.run(self._start())
        self.address = f"127.0.0.1:{self.frontend.port}"

    async def _start(self):
        self.server = InferenceServer(self.options, find_backend=lambda name: self.backend)
        GrpcMethods.of(self.server).add(self._methods)
        self.frontend = GrpcFrontend(self.server)
        await self.frontend.start()
        await self.server.start()

    def begin_stop(self, timeout_s=30.0):
        """Let the frontend stop; a future."""
        return self.loop_thread.begin(self.frontend.stop(timeout_s))

    def close(self):
        self.gate.open.set()
        self.begin_stop(1.0).result(60)
        self.loop_thread.run(self.server.stop(30))


@pytest.fixture
def serve(loop_thread, repository):
    """Start servers that end with the test."""
    started = []

    def start(**options):
        started.append(Served(loop_thread, repository, options))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(scope="module")
def served(loop_thread, repository):
    """One server without options for all tests of a module."""
    found = Served(loop_thread, repository, {})
    yield found
    found.close()


@pytest.fixture
def stub(served):
    with grpc.insecure_channel(served.address) as channel:
        yield pb_grpc.GRPCInferenceServiceStub(channel)


@pytest.fixture
def client(served):
    with client_library.InferenceServerClient(served.address) as found:
        yield found


@pytest.fixture(scope="session")
def infer_request():
    """Make a request with one input."""

    def make(model="echo", values=(1.0, 2.0), **fields):
        message = pb.ModelInferRequest(model_name=model, **fields)
        message.inputs.add(name="x", datatype="FP32", shape=[len(values)])
        message.raw_input_contents.append(np.array(values, np.float32).tobytes())
        return message

    return make


@pytest.fixture(scope="session")
def until():
    """Wait until something is so."""

    def wait(condition, timeout_s=20.0):
        end = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < end, "it did not come to be so"
            time.sleep(0.01)

    return wait
