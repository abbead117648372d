"""A real InferenceServer behind a real HttpFrontend on a free port, and clients that write bytes."""

import asyncio
import json
import ssl
from contextlib import asynccontextmanager

import pytest
from integration.http.scripted_server import ScriptedServer

import core
from core.options import Options
from core.server import InferenceServer
from frontends.http.frontend import HttpFrontend

_IO = """
backend: "test"
input [ {{ name: "x" data_type: {type} dims: [ {dims} ] }} ]
output [ {{ name: "y" data_type: {type} dims: [ {dims} ] }} ]
"""
MODELS = {
    "echo": _IO.format(type="TYPE_FP32", dims="-1"),
    "rows": _IO.format(type="TYPE_INT32", dims="2") + "max_batch_size: 4 dynamic_batching { }",
    "words": _IO.format(type="TYPE_STRING", dims="1"),
    "half": _IO.format(type="TYPE_FP16", dims="-1"),
    "gated": _IO.format(type="TYPE_FP32", dims="-1"),
    "broken": _IO.format(type="TYPE_FP32", dims="-1"),
    "stream": _IO.format(type="TYPE_FP32", dims="-1")
    + "model_transaction_policy { decoupled: true }",
}


class Echo(core.ModelInstance):
    """y = x. `gated` waits for the gate, `broken` raises; all requests are recorded."""

    async def execute(self, batch):
        backend = self.model.backend
        backend.requests += batch.requests
        if self.model.name == "gated":
            backend.running.set()
            await backend.gate.wait()
        if self.model.name == "broken":
            raise RuntimeError("broken by nature")
        return {"y": batch["x"]}


class Reply:
    """One HTTP response."""

    def __init__(self, head, body):
        first, *lines = head.decode("latin-1").split("\r\n")
        self.version, status, self.reason = first.split(" ", 2)
        self.status = int(status)
        self.headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


class Connection:
    """A client that sends exact bytes."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    def send(self, data):
        self.writer.write(data)

    async def reply(self, to="GET", timeout_s=10):
        return await asyncio.wait_for(self._reply(to), timeout_s)

    async def _reply(self, to):
        head = (await self.reader.readuntil(b"\r\n\r\n"))[:-4]
        found = Reply(head, b"")
        size = int(found.headers.get("content-length", 0))
        if to != "HEAD" and size:
            found.body = await self.reader.readexactly(size)
        return found

    async def rest(self, timeout_s=10):
        """Return every byte until the server closes the connection.

        The end may be a reset: the server does not read the rest of a refused request.
        """
        try:
            return await asyncio.wait_for(self.reader.read(), timeout_s)
        except ConnectionResetError:
            return b""

    async def ask(self, method, path, body=None, headers=()):
        self.send(request(method, path, body, headers))
        return await self.reply(method)

    def cut(self):
        self.writer.transport.abort()


def request(method, path, body=None, headers=()):
    """The bytes of a request; `body` may be a document."""
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: x",
        *(f"{k}: {v}" for k, v in dict(headers).items()),
    ]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def document(*values, **more):
    """A request to `echo`."""
    return {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [len(values)], "data": values}],
        **more,
    }


class Site:
    """The server, its frontend, and what its models saw."""

    def __init__(self, server, frontend, backend, tls=None):
        self.server = server
        self.frontend = frontend
        self.backend = backend
        self.tls = tls  # the certificates that a client trusts, None without TLS
        self.connections = []

    async def connect(self):
        streams = await asyncio.open_connection("127.0.0.1", self.frontend.port, ssl=self.tls)
        self.connections.append(Connection(*streams))
        return self.connections[-1]

    async def ask(self, method, path, body=None, headers=()):
        return await (await self.connect()).ask(method, path, body, headers)

    async def infer(self, model, body, headers=()):
        return await self.ask("POST", f"/v2/models/{model}/infer", body, headers)


def tls_options(certificates):
    return {
        "http_use_ssl": True,
        "http_server_cert": str(certificates.server_crt),
        "http_server_key": str(certificates.server_key),
    }


@asynccontextmanager
async def open_site(folder, lane="auto", certificates=None, **options):
    """Serve MODELS from `folder`; over TLS, if there are certificates."""
    for name, config in MODELS.items():
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(config)
    backend = core.Backend(instance=Echo)
    backend.requests, backend.running, backend.gate = [], asyncio.Event(), asyncio.Event()
    chosen = {
        "model_repository": [str(folder)],
        "http_address": "127.0.0.1",
        "http_port": 0,
        "disable_auto_complete_config": True,
        "http_lane": lane,
        **options,
    }
    tls = None
    if certificates is not None:
        tls = ssl.create_default_context(cafile=certificates.root_crt)
        chosen = tls_options(certificates) | chosen
    server = InferenceServer(Options.defaults(**chosen), find_backend=lambda name: backend)
    frontend = HttpFrontend(server)
    await frontend.start()
    await server.start()
    site = Site(server, frontend, backend, tls)
    try:
        yield site
    finally:
        backend.gate.set()
        for connection in site.connections:
            connection.writer.close()
        await frontend.stop(5)
        await server.stop(5)


@pytest.fixture(params=["auto", "aiohttp"])
def lane(request):
    """--http-lane: every test runs with the fast path, and with aiohttp alone."""
    return request.param


@pytest.fixture
def over_tls():
    """Return whether clients and server use TLS; a module may override it with both."""
    return False


@pytest.fixture
def transport(request, over_tls):
    """Return the arguments of open_site for the transport."""
    return {"certificates": request.getfixturevalue("certificates")} if over_tls else {}


@pytest.fixture
async def site(tmp_path, lane, transport):
    async with open_site(tmp_path / "models", lane, **transport) as found:
        yield found


@pytest.fixture
def open_with(tmp_path, lane, transport):
    """Serve with options: `async with open_with(...) as site`."""
    return lambda **options: open_site(
        tmp_path / "models", **{"lane": lane, **transport, **options}
    )


@pytest.fixture
def open_anew(tmp_path_factory, lane, transport):
    """The same from another folder each time, for a test that serves many times."""
    return lambda **options: open_site(
        tmp_path_factory.mktemp("site") / "models", **{"lane": lane, **transport, **options}
    )


@pytest.fixture
async def serve(lane):
    """Start a frontend over a server whose responses the test gives; return that server."""
    started = []

    async def start(**options):
        server = ScriptedServer(lane, **options)
        server.frontend = HttpFrontend(server)
        await server.frontend.start()
        started.append(server.frontend)
        return server

    yield start
    for frontend in started:
        await frontend.stop(1)


@pytest.fixture(name="document")
def document_fixture():
    return document


@pytest.fixture
def message():
    """The exact bytes of a request."""
    return request
