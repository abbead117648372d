"""Loops without a server: the same files, as fast as the GPU and its copies allow.

    copies    inputs of batch 1 │ inputs of batch 2 │ …
    compute                     │ graph: batch 1    │ graph: batch 2     │ …
    results                                         │ outputs of batch 1 │ …

Two batches are in flight. Inputs lie in pinned memory already, which the server has to fill itself; with
`fills`, the loop does that too, as a program does that gets its batches in ordinary memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

WARM = 4


class Slot:
    """Memory of one of the two batches in flight, and its graph."""

    def __init__(self, run: Callable[[Any], Any], host: Any, compute: Any, pool: Any):
        self.host = host.pin_memory()
        self.inputs = host.cuda()
        with torch.cuda.stream(compute):
            for _ in range(WARM):
                result = run(self.inputs)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=pool, stream=compute):
            result = run(self.inputs)
            self.outputs = result[0] if isinstance(result, list | tuple) else result
        self.answers = torch.empty_like(self.outputs, device="cpu").pin_memory()
        self.copied, self.computed, self.done = (torch.cuda.Event() for _ in range(3))
        self.done.record()


class BareLoop:
    """Run batches of one size with graphs and overlapped copies."""

    def __init__(self, run: Callable[[Any], Any], host: Any):
        self._rows = host.shape[0]
        self._source = host
        self._copies, self._compute, self._results = (torch.cuda.Stream() for _ in range(3))
        with torch.inference_mode():
            first = Slot(run, host, self._compute, None)
            self._slots = [first, Slot(run, host, self._compute, first.graph.pool())]

    def start(self, slot: Slot, *, fills: bool = False) -> None:
        """Queue one batch: copy, compute, copy. `slot.done` follows it."""
        if fills:
            slot.host.copy_(self._source)
        with torch.cuda.stream(self._copies):
            slot.inputs.copy_(slot.host, non_blocking=True)
            slot.copied.record()
        with torch.cuda.stream(self._compute):
            slot.copied.wait()
            slot.graph.replay()
            slot.computed.record()
        with torch.cuda.stream(self._results):
            slot.computed.wait()
            slot.answers.copy_(slot.outputs, non_blocking=True)
            slot.done.record()

    def rate(self, seconds: float, *, fills: bool = False) -> float:
        """Return rows per second."""
        with torch.inference_mode():
            runs, begin = 0, time.perf_counter()
            while time.perf_counter() - begin < seconds:
                for slot in self._slots:
                    slot.done.synchronize()
                    self.start(slot, fills=fills)
                    runs += 1
            torch.cuda.synchronize()
            return float(runs * self._rows / (time.perf_counter() - begin))

    def latencies(self, count: int, *, fills: bool = False) -> list[float]:
        """Return the seconds of each of some batches, one at a time."""
        found, slot = [], self._slots[0]
        with torch.inference_mode():
            for _ in range(count):
                begin = time.perf_counter()
                self.start(slot, fills=fills)
                slot.done.synchronize()
                found.append(time.perf_counter() - begin)
        return found
