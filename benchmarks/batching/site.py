"""The server whose batches are measured: python -m benchmarks.batching.site FOLDER

It has the real pipeline and HTTP frontend, and a model that takes a fixed time for any batch and records its
batches. FOLDER holds the repository `models`. The server writes `port` there when it listens, and at SIGTERM
`record.json`: the executions, and the delays of event loop timers.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

import core
from core.native.clock import Clock
from core.native.timer import LoopTimer
from core.options import Options
from core.server import InferenceServer
from frontends.http.frontend import HttpFrontend

BEAT_NS = 5_000_000
PORT, RECORD = "port", "record.json"


class Constant(core.ModelInstance):
    """Returns INPUT0 as OUTPUT0 after `busy_ms` milliseconds, a parameter of the model."""

    placement = "thread"

    def open(self) -> None:
        assert isinstance(self.model.backend, Recorder)
        self.busy_s = float(self.model.parameter("busy_ms")) / 1e3
        self.executions: list[tuple[int, int, list[int]]] = []
        self.model.backend.opened.append(self)

    def execute(self, batch: core.Batch) -> dict[str, Any]:
        start = time.monotonic_ns()
        time.sleep(self.busy_s)
        outputs = {"OUTPUT0": batch["INPUT0"]}
        arrivals = [request.arrival_ns for request in batch.requests]
        self.executions.append((start, time.monotonic_ns(), arrivals))
        return outputs


class Recorder(core.Backend):
    """Backend with a list of all its instances."""

    def __init__(self) -> None:
        super().__init__(instance=Constant)
        self.opened: list[Constant] = []


class Heart:
    """Timer on the loop that records its delays."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.late_ns: list[int] = []
        self._due = 0
        self._timer = LoopTimer(loop, Clock(), self.beat)

    def beat(self) -> None:
        now = time.monotonic_ns()
        if self._due:
            self.late_ns.append(now - self._due)
        self._due = now + BEAT_NS
        self._timer.set(self._due)

    def stop(self) -> None:
        self._timer.close()


async def serve(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    backend = Recorder()
    options = Options.defaults(
        model_repository=[str(folder / "models")], http_address="127.0.0.1", http_port=0
    )
    server = InferenceServer(options, find_backend=lambda name: backend)
    frontend = HttpFrontend(server)
    await frontend.start()
    await server.start()
    heart = Heart(loop)
    heart.beat()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    (folder / PORT).with_suffix(".part").write_text(str(frontend.port))
    (folder / PORT).with_suffix(".part").rename(folder / PORT)
    await ended.wait()
    heart.stop()
    executions = [
        (number, *execution)
        for number, instance in enumerate(backend.opened)
        for execution in instance.executions
    ]
    record = {"executions": executions, "late_ns": heart.late_ns}
    (folder / RECORD).write_text(json.dumps(record))
    await frontend.stop(5)
    await server.stop(5)


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
