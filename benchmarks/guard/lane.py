"""The requests whose instructions are counted: python -m benchmarks.guard.lane LANE COUNT [LIBRARY]

A Server with one identity model, no sockets: parse → infer → render, COUNT times, one at a time.
LIBRARY is what collect.cc compiles to.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import importlib.util
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from multidict import CIMultiDict

from benchmarks.exchange import GRPC_PATH, exchange, read_grpc, read_http
from benchmarks.models import repository
from benchmarks.models.sample import SAMPLES
from core.backend import Backend
from core.errors import CoreError
from core.options import Options
from core.server import Server
from frontends.grpc.call import Call
from frontends.grpc.intake import Intake
from frontends.grpc.method import Unary
from frontends.grpc.table import methods
from frontends.http.codec.parse import parse
from frontends.http.codec.render import write

Tell = Callable[[], object]

LANES = ("http-json", "http-binary", "grpc")
MODEL = "identity"
WARM = 50
BACKEND = Path(__file__).parents[1] / "identity_backend" / "backend_identity" / "__init__.py"


def backend() -> Backend:
    """The identity backend, from its file: it need not be installed here."""
    spec = importlib.util.spec_from_file_location("backend_identity", BACKEND)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Backend = module.backend
    found.name = MODEL
    return found


async def ask(lane: str, count: int, begin: Tell, end: Tell) -> None:
    """Serve, check one answer, warm up, then ask `count` times between `begin` and `end`."""
    with tempfile.TemporaryDirectory(prefix="guard-") as folder:
        models = repository.write(Path(folder), "one")
        identity = backend()
        server = Server(
            Options.defaults(model_repository=[str(models)]), find_backend=lambda name: identity
        )
        await server.start()
        try:
            one = http(server, lane) if lane.startswith("http") else grpc(server)
            await one(check=True)
            for _ in range(WARM):
                await one()
            gc.collect()
            gc.disable()  # when it comes depends on all that was before
            begin()
            for _ in range(count):
                await one()
            end()
        finally:
            await server.stop(10)


def http(server: Server, lane: str) -> Callable[..., Awaitable[None]]:
    """One request as the HTTP frontend walks it, from the body to the parts of the answer."""
    asked = exchange(lane, [MODEL], SAMPLES[MODEL]())
    request = asked.requests[0]
    headers = CIMultiDict(request.headers)
    most_bytes = server.options.http_max_input_size

    async def one(check: bool = False) -> None:
        signature = server.signature(MODEL)
        parsed, form = parse(
            MODEL, -1, signature, headers, request.body, most_bytes, server.shared_memory
        )
        json_size, parts = write(await server.infer(parsed), form)
        if check:
            found = read_http(b"".join(bytes(part) for part in parts), json_size or None)
            assert not asked.sample.difference(found)

    return one


def grpc(server: Server) -> Callable[..., Awaitable[None]]:
    """One request as a gRPC engine hands it to the method: `begin` where the method has it."""
    method = methods(server, Intake())[GRPC_PATH]
    assert isinstance(method, Unary)
    asked = exchange("grpc", [MODEL], SAMPLES[MODEL]())
    body = asked.requests[0].body

    async def one(check: bool = False) -> None:
        if method.begin is None:
            answer: Any = await method.function(body, Call())
        else:
            done = asyncio.get_running_loop().create_future()
            method.begin(body, Call(), done.set_result)
            answer = await done
        if isinstance(answer, CoreError):
            raise answer
        if check:
            whole = answer if isinstance(answer, bytes) else b"".join(map(bytes, answer))
            assert not asked.sample.difference(read_grpc(whole))

    return one


if __name__ == "__main__":
    collect = ctypes.CDLL(sys.argv[3]) if len(sys.argv) > 3 else None
    ends: tuple[Tell, Tell] = (collect.begin, collect.end) if collect else (int, int)
    asyncio.run(ask(sys.argv[1], int(sys.argv[2]), *ends))
