"""Measuring: what one load takes, from readings before and after it.

A reading counts the whole process, so loads follow each other while they are measured. The heap is trimmed
before each reading. Otherwise a load could take what earlier models have freed, and buffers that the load has
freed would count as the model's. Requests that run meanwhile move the figures, by what they allocate.

On a GPU, the bytes of this process and of its children count where the driver tells them, else those of all
processes. With workers, the latter are no measurement if they have changed: other devices keep theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from core.governing import ModelVersion
from core_memory_budget.measure import Meter, Reading
from core_memory_budget.own_blocks import OwnBlocks
from core_memory_budget.sizes import HOST, Bytes

T = TypeVar("T")

PATIENCE_S = 10.0  # a load waits no longer for the end of another one: that may wait for a request of its own
_LEAST_GPU = 1 << 20  # smaller changes on a GPU are those of others


@dataclass
class Measured:
    """The result of a measurement.

    kept        device → bytes that the model takes; empty if the system tells nothing
    peak        device → bytes at the highest moment of the load
    exact       whether no other load or unload of this process came in between
    known       devices of which `kept` has what this load took; one that it does not list took nothing
    unknown     GPUs that were read, but of which it is not known
    own         bytes of `kept` on the host that are in this process
    processes   bytes of the processes in which its instances run
    """

    kept: Bytes = field(default_factory=dict)
    peak: Bytes = field(default_factory=dict)
    exact: bool = False
    known: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    own: int = 0
    processes: int = 0


class Measuring:
    """Measures loads, one at a time. Event loop only.

    on       whether to measure this process; if not, only processes of models are measured
    workers  of the server: they share the GPUs, and do not know of the loads of each other
    """

    def __init__(self, meter: Meter, loop: asyncio.AbstractEventLoop, on: bool, workers: int = 1):
        self._meter = meter
        self._only_worker = workers <= 1
        self._loop = loop
        self._on = on and meter.works
        self._turn = asyncio.Lock()
        self._blocks = OwnBlocks()
        self._disturbed = 0  # loads and unloads that a measurement cannot tell from its own

    def disturb(self) -> None:
        """Note that a version was unloaded, or loaded outside of a measurement."""
        self._disturbed += 1

    @asynccontextmanager
    async def around(
        self, version: ModelVersion, nested: bool, result: Measured
    ) -> AsyncIterator[None]:
        """Measure the load in the block, and write into `result` what it took.

        nested   whether another load waits for this one: then it begins at once, and is not exact
        """
        alone = self._on and not nested and await self._begin()
        if not alone:
            self.disturb()
        try:
            if alone:
                self._disturbed = 0
            before = await self._read() if self._on else Reading(0, 0)
            with self._blocks.during_a_load():
                yield
            if self._on:
                # The instances are open. The end of their load is the last callback of the loop.
                peak = self._meter.peak()
                after = await self._read(reset=False)
                mapped = await self._run(self._meter.mapped, version.directory)
                result.exact = alone and not self._disturbed
                _compare(before, after, peak, mapped, result, self._only_worker)
            result.processes = await self.of_processes(version)
            for sizes in (result.kept, result.peak):
                sizes[HOST] = sizes.get(HOST, 0) + result.processes
        finally:
            if alone:
                self._turn.release()

    async def of_processes(self, version: ModelVersion) -> int:
        """Return the bytes of the processes in which the instances of a version run; 0 without any."""
        return sum([await self._run(self._meter.of_process, pid) for pid in self.pids(version)])

    @staticmethod
    def pids(version: ModelVersion) -> set[int]:
        """Return the processes in which the instances of a version run, other than this one."""
        chain = getattr(version, "chain", None)
        return {pid for each in getattr(chain, "opened", ()) for pid in each.pids}

    @asynccontextmanager
    async def unload(self, busy: bool) -> AsyncIterator[None]:
        """Keep an unload in the block apart from measurements, and return its memory to the system.

        busy   whether the unload has to wait for requests: then measurements do not wait for it
        """
        alone = self._on and not busy and await self._begin()
        try:
            yield
            if self._on:
                await self._run(self._meter.trim)
        finally:
            if alone:
                self._turn.release()

    async def _begin(self) -> bool:
        try:
            await asyncio.wait_for(self._turn.acquire(), PATIENCE_S)
        except asyncio.TimeoutError:
            return False
        return True

    async def _read(self, reset: bool = True) -> Reading:
        def read() -> Reading:
            self._meter.trim()
            if reset:
                self._meter.forget_peak()
            return self._meter.now()

        return await self._run(read)

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        return await self._loop.run_in_executor(None, function, *args)


def _compare(
    before: Reading, after: Reading, peak: int, mapped: int, result: Measured, alone: bool
) -> None:
    """Write into `result` what was taken between two readings, and of which devices that is known.

    alone   whether no other worker loads models on the GPUs
    """
    result.known = {HOST}
    result.own = max(0, after.private - before.private) + mapped
    result.kept[HOST] = result.own
    result.peak[HOST] = max(result.own, peak - before.resident + mapped)
    for device in after.gpus.keys() | before.gpus.keys():
        size = _of_load(before, after, device, alone)
        (result.unknown if size is None else result.known).add(device)
        if size is not None and size >= _LEAST_GPU:
            result.kept[device] = result.peak[device] = size


def _of_load(before: Reading, after: Reading, device: str, alone: bool) -> int | None:
    """Return the bytes of a GPU that were taken between two readings.

    None if others may have taken them, or a reading lacks the GPU: NVML may fail at one of them.
    """
    # Without the bytes of processes before, those after it would make the whole process one load.
    if device in after.own_gpus and device not in before.untold:
        return after.own_gpus[device] - before.own_gpus.get(device, 0)
    if device not in before.gpus or device not in after.gpus:
        return None
    size = after.gpus[device] - before.gpus[device]
    return size if alone or abs(size) < _LEAST_GPU else None
