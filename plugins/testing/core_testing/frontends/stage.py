"""Stage: a real InferenceServer behind the frontend under test, and the models that the tests call.

FrontendClient ─► transport ─► frontend ─► InferenceServer ─► [these models]
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import core
from core import dtypes
from core.errors import unavailable
from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core_testing.frontends.client import FrontendClient

T = TypeVar("T")

PATIENCE_S = 30.0  # a test that takes longer fails
ADDRESS = "127.0.0.1"
FLOOD = 4000  # answers of the model `flood`, of 16 KiB each: far more than any buffer holds
DATATYPES = [each for each in dtypes.BY_NAME if each not in ("BYTES", "BF16")]

_MUCH = np.array([b"x" * 16384], object)
_TENSOR = 'name: "{name}" data_type: TYPE_{dtype} dims: [ {dims} ]'


def _config(dtype: str = "FP32", dims: str = "-1", more: str = "") -> str:
    x = _TENSOR.format(name="x", dtype=dtype, dims=dims)
    y = _TENSOR.format(name="y", dtype=dtype, dims=dims)
    z = _TENSOR.format(name="z", dtype=dtype, dims=dims)
    return f'backend: "kit" input [ {{ {x} }} ] output [ {{ {y} }}, {{ {z} }} ] {more}'


_DECOUPLED = "model_transaction_policy { decoupled: true }"
MODELS = {
    "echo": _config(),
    "rows": _config(more="max_batch_size: 8 dynamic_batching { }", dims="2"),
    "words": _config("STRING"),
    "gated": _config(),
    "broken": _config(),
    "count": _config("INT32", "1", _DECOUPLED),
    "flood": 'backend: "kit" input [ { name: "x" data_type: TYPE_INT32 dims: [ 1 ] } ] '
    f'output [ {{ name: "y" data_type: TYPE_STRING dims: [ 1 ] }} ] {_DECOUPLED}',
}
OF_EACH_DATATYPE = {f"of_{name.lower()}": _config(name) for name in DATATYPES}


class Seen:
    """Events of the models, which tests wait for. Event loop only.

    running     a request of `gated` executes
    cancelled   this request has been cancelled
    gate        set by the test: the request continues
    held        a stream waits because its client is behind with reading
    flooded     number of answers that `flood` has sent
    """

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.gate = asyncio.Event()
        self.held = asyncio.Event()
        self.flooded = 0


class Actor(core.ModelInstance):
    """The instance of all models.

    `echo`, `rows`, `words` and `of_…` return y = z = x. `gated` waits first, `broken` raises, `count` and
    `flood` stream x answers.
    """

    seen: Seen

    async def execute(self, batch: core.Batch) -> Any:  # type: ignore[override]
        name = self.model.name
        if name == "broken":
            raise RuntimeError("broken by nature")
        if name in ("count", "flood"):
            for i, request in enumerate(batch.requests):
                await self._stream(batch, i, request, name)
            return None
        if name == "gated":
            await self._wait(batch.requests[0])
        x = batch["x"]
        return {"y": x, "z": x}

    async def _wait(self, request: InferenceRequest) -> None:
        request.on_cancel(self.seen.cancelled.set)
        self.seen.running.set()
        await self.seen.gate.wait()

    async def _stream(
        self, batch: core.Batch, i: int, request: InferenceRequest, name: str
    ) -> None:
        for value in range(int(request.inputs["x"].array.ravel()[0]), 0, -1):
            if request.cancelled:
                break
            if request.paused:
                self.seen.held.set()
                free = asyncio.Event()
                request.when_free(free.set)
                await free.wait()
            if name == "flood":
                batch.respond(i, {"y": _MUCH}, final=False)
                self.seen.flooded += 1
            else:
                y = np.array([value], np.int32)
                batch.respond(i, {"y": y, "z": y}, final=False)
            await asyncio.sleep(0)
        batch.finish(i)


class Stage:
    """The server, the started frontend and its clients. Event loop of the test only.

    server     started, unless the test loads no models
    frontend   started
    seen       events of the models
    """

    def __init__(
        self, server: InferenceServer, frontend: Any, made: type[FrontendClient], seen: Seen
    ):
        self.server = server
        self.frontend = frontend
        self.seen = seen
        self._made = made
        self._clients: list[FrontendClient] = []
        self._begun: list[asyncio.Task[Any]] = []

    async def connect(self) -> FrontendClient:
        """Open and return another client. `leave` closes it."""
        client = self._made(ADDRESS, int(self.frontend.port))
        await asyncio.wait_for(client.open(), PATIENCE_S)
        self._clients.append(client)
        return client

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task that may still run, or fail, at the end of the test. `leave` cancels it."""
        task = asyncio.ensure_future(coroutine)
        self._begun.append(task)
        return task

    async def leave(self) -> None:
        """Close every client, and cancel the tasks of `begin`."""
        for client in self._clients:
            await client.close()
        for task in self._begun:
            task.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)


@asynccontextmanager
async def stage(
    folder: Path,
    frontend: type[Any],
    client: type[FrontendClient],
    name: str,
    options: dict[str, Any],
    *,
    load: bool = True,
    more: Mapping[str, str] | None = None,
) -> AsyncIterator[Stage]:
    """Serve MODELS from `folder` through the frontend inside the async with statement.

    name      of the frontend in options: <name>_address, <name>_port
    options   further options of the server
    load      whether to start the server, which loads the models; otherwise only the frontend is started
    more      further models: name → configuration
    """
    for model, config in {**MODELS, **(more or {})}.items():
        (folder / model / "1").mkdir(parents=True, exist_ok=True)
        (folder / model / "config.pbtxt").write_text(config)
    seen = Seen()
    instance = type("Actor", (Actor,), {"seen": seen})
    backend = core.Backend(instance=instance)
    chosen = {
        "model_repository": [str(folder)],
        "disable_auto_complete_config": True,
        f"{name}_address": ADDRESS,
        f"{name}_port": 0,
        **options,
    }
    server = InferenceServer(Options.defaults(**chosen), find_backend=lambda _: backend)
    opened = frontend(server)
    await opened.start()
    if not getattr(opened, "port", 0):
        raise unavailable(
            f"frontend '{name}' tells no port: the kit looks for its attribute `port`"
        )
    found = Stage(server, opened, client, seen)
    try:
        if load:
            await server.start()
        yield found
    finally:
        seen.gate.set()
        await found.leave()
        await opened.stop(1.0)
        await server.stop(PATIENCE_S)
