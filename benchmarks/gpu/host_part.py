"""What the host adds to a batch on a GPU, measured without a GPU: python -m benchmarks.gpu.host_part

A timeline takes the GPU's place: each copy and each batch ends when it would on a GPU, and takes no time of
the processor. Threads, gathering and answers of backend-pytorch are real; the calls of CUDA are missing. The
loop beside it waits for the same timeline, without a server.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from backend_pytorch import cuda, instance

from benchmarks.gpu.models import CLIENTS, served
from core.devices import dlpack

CASES = ((1, 0.7e-3), (8, 1.2e-3), (64, 6.8e-3))  # images, and the seconds that they compute
COPY_BYTES_PER_S = 25e9
CALL_S = 8e-6  # of each copy
IMAGE, CLASSES = (3, 224, 224), 1000
STAGES = 4  # memory of each size: more than there are batches in flight
CONFIG = f"""backend: "pytorch" max_batch_size: 64 instance_group [ {{ kind: KIND_MODEL }} ]
input [ {{ name: "x" data_type: TYPE_FP16 dims: {list(IMAGE)} }} ]
output [ {{ name: "y" data_type: TYPE_FP16 dims: [ {CLASSES} ] }} ]
"""


class Timeline:
    """When the engines of a GPU are free: copies in, computing, copies out. Thread-safe."""

    def __init__(self) -> None:
        self._free = {"in": 0.0, "compute": 0.0, "out": 0.0}
        self._lock = threading.Lock()

    def add(self, engine: str, seconds: float, after: float = 0.0) -> float:
        """Return when work ends that begins now, after other work of its engine and after `after`."""
        with self._lock:
            begin = max(time.perf_counter(), self._free[engine], after)
            self._free[engine] = begin + seconds
            return begin + seconds


class TimedStreams(cuda.DeviceStreams):
    """Streams whose copies and computing take the time of a timeline. compute_s: seconds of each batch"""

    def __init__(self) -> None:
        self.device, self.place = torch.device("cpu"), (dlpack.CUDA, 0)
        self._kind = dlpack.CUDA
        self._timeline, self.compute_s = Timeline(), 0.0
        self._copied = self._computed = self._done = 0.0
        self._stages: dict[int, Iterator[Any]] = {}

    @contextmanager
    def feeding(self) -> Iterator[None]:
        yield

    computing = current = feeding

    def staging(self, size: int) -> Any:
        if size not in self._stages:
            self._stages[size] = cycle(torch.zeros(STAGES, size, dtype=torch.uint8))
        return next(self._stages[size])

    def room(self, staged: Any) -> tuple[Any, bool]:
        return staged.new_empty(0).set_(staged), False

    def send(self, staged: Any, room: Any, begin: int, end: int) -> None:
        self._copied = self._timeline.add("in", (end - begin) / COPY_BYTES_PER_S + CALL_S)

    def fed(self, tensors: Any) -> None:
        list(tensors)

    def on_host(self, tensor: Any) -> bool:
        return False

    def computed(self) -> None:
        self._computed = self._timeline.add("compute", self.compute_s, self._copied)

    def to_host(self, tensor: Any) -> Any:
        seconds = tensor.numel() * tensor.element_size() / COPY_BYTES_PER_S + CALL_S
        self._done = self._timeline.add("out", seconds, self._computed)
        return tensor.clone()

    def mark(self) -> Any:
        return TimedMark(self._done)

    def settle(self) -> None:
        pass


class TimedMark:
    def __init__(self, at: float):
        self._at = at

    def wait(self) -> None:
        time.sleep(max(0.0, self._at - time.perf_counter()))


def measure(seconds: float, count: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each of CASES. seconds: of the rate; count: single batches whose median is taken"""
    import core

    streams = TimedStreams()
    with (
        tempfile.TemporaryDirectory(prefix="host-part-") as folder,
        patch.object(instance, "has_gpus", lambda: True),
        patch.object(cuda, "streams_of", lambda device, program, polls: streams),
    ):
        write(Path(folder))
        with core.Server(model_repository=folder) as server:
            for rows, compute_s in CASES:
                streams.compute_s = compute_s
                yield {"images": rows, **_compared(server, streams, rows, seconds, count)}


def write(folder: Path) -> None:
    """Write a repository with a model that computes nothing: y is a part of x."""

    class Part(torch.nn.Module):  # type: ignore[misc]  # torch is not read
        def forward(self, x: Any) -> Any:
            return x.flatten(1)[:, :CLASSES]

    version = folder / "part" / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces that TorchScript will not be developed
        part = torch.jit.trace(Part().eval(), torch.zeros(2, *IMAGE).half())
        torch.jit.save(part, str(version / "model.pt"))


def _compared(
    server: Any, streams: TimedStreams, rows: int, seconds: float, count: int
) -> dict[str, float]:
    host = torch.rand(rows, *IMAGE).half()
    inputs, flat = {"x": host.numpy()}, host.view(torch.uint8).reshape(-1)

    def ask() -> Any:
        return server.infer("part", inputs)

    def loop() -> None:
        streams.send(flat, flat, 0, flat.numel())
        streams.computed()
        streams.to_host(host.flatten(1)[:, :CLASSES])
        streams.mark().wait()

    for _ in range(5):
        ask()
    alone, bare = _median_s(ask, count), _median_s(loop, count)
    longest = max(streams.compute_s, flat.numel() / COPY_BYTES_PER_S + CALL_S)
    return {
        "bare_p50_ms": 1e3 * bare,
        "added_p50_ms": 1e3 * (alone - bare),
        "ratio": served(ask, seconds, CLIENTS, rows) * longest / rows,
    }


def _median_s(work: Any, count: int) -> float:
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return median(found)


if __name__ == "__main__":
    for row in measure(2.0, 300):
        print(json.dumps({name: round(value, 3) for name, value in row.items()}), flush=True)
