"""One server with both protocols in this process, on a loop in a separate thread; tests are its clients.

Each test is a class of published weaknesses of model servers, and the rule that prevents it.
"""

import asyncio
import http.client
import importlib.util
import json
import pathlib
import socket
import threading
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc
from backend_python import backend as PYTHON

import core
from core.options import Options
from core.server import InferenceServer
from frontends.grpc.frontend import GrpcFrontend
from frontends.http.frontend import HttpFrontend

_IO = """
backend: "test"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
_BYTES = _IO.replace("FP32", "STRING")
MODELS = {
    "echo": _IO,
    "rows": _IO.replace("-1", "2") + "max_batch_size: 4 dynamic_batching { }",
    "words": _BYTES,
    "gated": _IO,
    "many": _IO + "model_transaction_policy { decoupled: true }",
}
LANES = {"fast": ("auto", "native"), "plain": ("aiohttp", "grpcio")}


class Instance(core.ModelInstance):
    """y = x; `gated` and `narrow` wait for the gate, `many` answers each element, below zero is an error."""

    def execute(self, batch):
        if self.model.name == "kept" and (batch["x"] < 0).any():
            raise ValueError("below zero")
        if self.model.name == "many":
            for i, request in enumerate(batch.requests):
                for value in request.inputs["x"].array:
                    batch.respond(i, {"y": np.array([value])}, final=False)
                batch.finish(i)
            return None
        if self.model.name in ("gated", "narrow"):
            self.model.backend.running.set()
            self.model.backend.gate.wait(20)
        return {"y": batch["x"]}


class Reply(SimpleNamespace):
    """Status and body of an HTTP answer."""

    @property
    def text(self):
        return json.loads(self.body)["error"]


class Served:
    """The server and what clients do."""

    def __init__(self, folder, lanes, options, models=None, areas=()):
        self.repository = folder / "models"
        for name, config in {**MODELS, **(models or {})}.items():
            (self.repository / name / "1").mkdir(parents=True, exist_ok=True)
            (self.repository / name / "config.pbtxt").write_text(config)
        lane, engine = LANES[lanes]
        if (
            engine == "native"
            and importlib.util.find_spec("frontends.grpc.native.connection") is None
        ):
            pytest.skip("the engine on nghttp2 was not built")
        self.backend = core.Backend(instance=Instance)
        self.backend.running, self.backend.gate = threading.Event(), threading.Event()
        self._options = {
            "model_repository": [str(self.repository)],
            "http_address": "127.0.0.1",
            "grpc_address": "127.0.0.1",
            "http_port": 0,
            "grpc_port": 0,
            "http_lane": lane,
            "grpc_engine": engine,
            "disable_auto_complete_config": True,
            **options,
        }
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.run(self._start(areas))

    async def _start(self, areas):
        options = Options.defaults(**self._options)
        backends = {"test": self.backend, "python": PYTHON}
        self.server = InferenceServer(options, find_backend=backends.__getitem__)
        for area in areas:
            self.server.control.add(area)
        self.http, self.grpc = HttpFrontend(self.server), GrpcFrontend(self.server)
        await self.http.start()
        await self.grpc.start()
        await self.server.start()
        self.channel = None

    def run(self, coroutine):
        """Run it on the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def call(self, function, *arguments):
        """Call it on the server's loop."""

        async def called():
            return function(*arguments)

        return self.run(called())

    def close(self):
        self.backend.gate.set()
        if self.channel is not None:
            self.channel.close()
        self.run(self.http.stop(5))
        self.run(self.grpc.stop(5))
        self.run(self.server.stop(10))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # clients ------------------------------------------------------------------------

    def ask(self, method, path, body=None, headers=()):
        """One HTTP request."""
        client = http.client.HTTPConnection("127.0.0.1", self.http.port, timeout=30)
        if isinstance(body, dict | list):
            body = json.dumps(body).encode()
        client.putrequest(method, path, skip_accept_encoding=True)
        for name, value in dict(headers).items():
            client.putheader(name, value)
        if body is not None:
            client.putheader("Content-Length", str(len(body)))
        client.endheaders(body)
        answer = client.getresponse()
        found = Reply(status=answer.status, body=answer.read(), headers=answer.headers)
        client.close()
        return found

    def infer(self, body, model="echo", headers=()):
        return self.ask("POST", f"/v2/models/{model}/infer", body, headers)

    def send(self, data):
        """Send exact bytes on a separate connection; return the response, b"" for none."""
        with socket.create_connection(("127.0.0.1", self.http.port), timeout=30) as own:
            found = b""
            try:
                own.sendall(data)
                while b"}" not in found and (piece := own.recv(65536)):
                    found += piece  # an error is one JSON object; the server may linger behind it
            except ConnectionError:
                pass
            return found

    def open(self, data):
        """A connection on which these bytes were sent."""
        own = socket.create_connection(("127.0.0.1", self.http.port), timeout=30)
        own.sendall(data)
        return own

    def channel_now(self):
        """A channel that ends with the server."""
        if self.channel is None:
            self.channel = grpc.insecure_channel(f"127.0.0.1:{self.grpc.port}")
        return self.channel

    @property
    def stub(self):
        return pb_grpc.GRPCInferenceServiceStub(self.channel_now())

    def refused(self, method, message):
        """The error of a gRPC call."""
        with pytest.raises(grpc.RpcError) as error:
            getattr(self.stub, method)(message, timeout=30)
        return error.value


@pytest.fixture(scope="session", params=LANES)
def lanes(request):
    """Run everything with the fast path and the native engine, and with the others."""
    return request.param


@pytest.fixture(scope="session")
def shared_server(lanes, tmp_path_factory):
    found = Served(
        tmp_path_factory.mktemp("weaknesses"),
        lanes,
        {"model_control_mode": "explicit", "load_model": ["*"], "allow_client_shm": True},
    )
    yield found
    found.close()


@pytest.fixture
def server(shared_server):
    """A server with explicit model control and shared memory, which is right after each test."""
    yield shared_server
    answer = shared_server.infer(document(1.0, 2.0))
    assert (answer.status, json.loads(answer.body)["outputs"][0]["data"]) == (200, [1.0, 2.0])
    answer = shared_server.stub.ModelInfer(message(1.0, 2.0), timeout=30)
    assert np.frombuffer(answer.raw_output_contents[0], np.float32).tolist() == [1.0, 2.0]


@pytest.fixture
def serve(lanes, tmp_path):
    """Serve with options of a test's own."""
    started = []

    def start(models=None, areas=(), **options):
        started.append(Served(tmp_path, lanes, options, models, areas))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(scope="session")
def serve_in():
    """Return the class of the server, for modules with one server."""
    return Served


def document(*values, **more):
    """A request to `echo`."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(values)], "data": list(values)}
    return {"inputs": [tensor], **more}


def message(*values, model="echo", **more):
    """The same over gRPC."""
    found = pb.ModelInferRequest(model_name=model, **more)
    found.inputs.add(name="x", datatype="FP32", shape=[len(values)])
    found.raw_input_contents.append(np.array(values, np.float32).tobytes())
    return found


@pytest.fixture
def resident():
    """Bytes that this process, which the server is in, has in memory."""

    def now():
        status = pathlib.Path("/proc/self/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    return now


@pytest.fixture
def raw_call():
    """Send one call of gRPC with any bytes as its path, and read until the server ends it."""

    def call(port, path):
        headers = [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path),
            (b":authority", b"x"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        ]
        block = b"".join(
            b"\0" + b"".join(b"%c" % len(text) + text for text in pair) for pair in headers
        )
        frames = (4, 0, 0, b""), (1, 4, 1, block), (0, 1, 1, bytes(5))
        data = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"".join(
            len(payload).to_bytes(3, "big")
            + bytes((kind, flags))
            + number.to_bytes(4, "big")
            + payload
            for kind, flags, number, payload in frames
        )
        with socket.create_connection(("127.0.0.1", port), timeout=30) as own:
            try:
                own.sendall(data)
                own.shutdown(socket.SHUT_WR)
                while own.recv(65536):
                    pass
            except OSError:
                pass

    return call


@pytest.fixture(name="document")
def document_fixture():
    return document


@pytest.fixture(name="message")
def message_fixture():
    return message
