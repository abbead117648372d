"""Routers and servers that run while a test does."""

import asyncio
import contextlib
import json
import threading
from typing import ClassVar

import numpy as np
import pytest
import uvloop
from core_router.http import top_level
from core_router.operate.admin import Admin
from core_router.options import Limits, RouterOptions
from core_router.router import Router
from core_router.servers.addresses import read_servers

import core
from routing.requests import PATIENCE_S, ask

VECTOR = ("FP32", [-1])

compiled_only = pytest.mark.skipif(
    top_level.__file__.endswith(".py"), reason="core-router was installed without its compiled part"
)


class LoopThread:
    """An event loop on a thread: what runs on it is not delayed by the test."""

    def __init__(self):
        self.loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()


class RunningRouter:
    """A router on a thread.

    port, grpc_port, admin   its ports
    """

    def __init__(self, thread, servers, limits=None, **options):
        fast = {"check_s": 0.1, "check_timeout_s": 1.0, "resolve_s": 0.1, "drain_s": 5.0}
        self._thread = thread
        self.router, self._operators = thread.run(
            self._open(
                RouterOptions(
                    options.pop("sources", None) or read_servers(servers),
                    address="127.0.0.1",
                    port=0,
                    grpc_port=0,
                    admin_port=0,
                    limits=Limits(**(limits or {})),
                    **{**fast, **options},
                )
            )
        )

    async def _open(self, options):
        router = Router(options)
        admin = Admin(router)
        self.port, self.grpc_port = await router.open()
        self.admin = await admin.open(options.admin_address, 0)
        return router, admin

    def servers(self):
        return {each["name"]: each for each in ask(self.admin, "/servers").json}

    def metric(self, name, **labels):
        """Return the sum of the samples of a metric that have these labels."""
        total = 0.0
        for line in ask(self.admin, "/metrics").body.decode().splitlines():
            if line.startswith((f"{name}{{", f"{name} ")) and all(
                f'{key}="{value}"' in line for key, value in labels.items()
            ):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def drain(self):
        return asyncio.run_coroutine_threadsafe(self.router.drain(), self._thread.loop)

    def close(self):
        self._thread.run(self._close())

    async def _close(self):
        await self._operators.close()
        await self.router.close()


class Behaving:
    """A server of core with models that say which server they are on.

    flags   of its frontends
    """

    def __init__(self, number, **flags):
        self.number = number
        self.gate = threading.Event()
        self.gate.set()
        self.server = core.Server(**flags)
        self.server.start()
        vector = {"inputs": {"x": VECTOR}, "outputs": {"y": VECTOR}}
        self.server.bind("who", self._who, **vector)
        self.server.bind("gated", self._gated, instances=4, **vector)
        self.server.bind(
            "sums",
            self._sums,
            **vector,
            requests=True,
            config={"sequence_batching": {"max_sequence_idle_microseconds": 60_000_000}},
        )
        self.server.bind(f"only_{number}", self._who, **vector)
        self._totals = {}
        ports = self.server.serve(http_port=0, grpc_port=0, metrics_port=0)
        self.port = ports["http"]
        self.name = f"127.0.0.1:{self.port}"
        self.address = f"{self.name}:{ports['grpc']}"
        self.reporting = f"{self.address}:{ports['metrics']}"  # with the port of its load reports

    def _who(self, x):
        return {"y": np.append(x, np.float32(self.number))}

    def _gated(self, x):
        assert self.gate.wait(PATIENCE_S)
        return self._who(x)

    def _sums(self, x, requests):
        """Return the sum of the sequence so far, and the number of the server."""
        (request,) = requests
        key = request.correlation_id
        self._totals[key] = (0 if request.flags & 1 else self._totals[key]) + float(x.sum())
        return {"y": np.array([self._totals[key], self.number], np.float32)}


INDEX = [{"name": "m", "version": "1", "state": "READY"}]


class Scripted:
    """A server that checks find ready, with a model m, and whose responses a test defines.

    tls        context of its port; None without TLS
    respond    coroutine function of (reader, writer, request line, body) for all other requests
    requests   the request lines that `respond` was called for
    configs    model → its configuration, in place of `config`
    """

    configs: ClassVar[dict] = {}
    index_status = config_status = 200

    def __init__(self, thread, respond, tls=None):
        self._thread = thread
        self.respond = respond
        self.requests = []
        self.index = INDEX
        self.config = {}
        self.ready = 200
        self.metrics = b""
        self.is_hung = False  # whether it answers nothing more
        self.early = b""  # sent as soon as the head of a request has come
        self._serving = set()
        self._server = thread.run(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls))
        self.name = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def close(self):
        self._thread.run(self._close())

    async def _close(self):
        self._server.close()
        for each in self._serving:
            each.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        try:
            await self._answer_all(reader, writer)
        finally:
            writer.close()

    async def _answer_all(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line = head.partition("\r\n")[0]
                while self.is_hung:
                    await asyncio.sleep(0.05)
                if self.early and "/infer" in line:
                    writer.write(self.early)
                size = next(
                    (
                        int(each[15:])
                        for each in head.lower().split("\r\n")
                        if each[:15] == "content-length:"
                    ),
                    0,
                )
                body = await reader.readexactly(size)
                if "/v2/health/ready" in line:
                    writer.write(said(b"", status=self.ready))
                elif "/v2/repository/index" in line:
                    writer.write(said(json.dumps(self.index).encode(), self.index_status))
                elif "/v2/repository/changes" in line:
                    writer.write(said(b"", status=404))
                elif line.startswith("GET /metrics "):
                    writer.write(said(self.metrics, status=200 if self.metrics else 404))
                elif line.endswith("/config HTTP/1.1"):
                    name = line.split("/")[3]
                    config = json.dumps(self.configs.get(name, self.config)).encode()
                    writer.write(said(config, self.config_status))
                else:
                    self.requests.append(line)
                    await self.respond(reader, writer, line, body)


def said(body, status=200, *fields):
    """Return the bytes of a response."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


async def good(reader, writer, line, body):
    writer.write(said(b"good:" + body))


async def reset(reader, writer, line, body):
    writer.transport.abort()


async def refuse(reader, writer, line, body):
    writer.write(said(b'{"error":"full"}', 503))


async def silent(reader, writer, line, body):
    await asyncio.sleep(PATIENCE_S)
