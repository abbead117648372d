"""The functions of CUDA that this backend needs, and what it uses of CuPy's objects.

slot, run, instance ─► [Cuda] ─► CuPy ─► the GPU.  Tests replace it to run without a GPU. Addresses are
integers, sizes are bytes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from core.devices import pools

MAX_PRIORITY, DEFAULT_PRIORITY = -100, 0  # CUDA uses the nearest supported one; 0 is the lowest


class Event(Protocol):
    """An event of CUDA."""

    def record(self, stream: Any) -> None:
        """Record the event after all work that the stream has so far."""

    def synchronize(self) -> None:
        """Block until the stream has reached the event. Raises errors of the device up to then."""


class Stream(Protocol):
    """A stream of CUDA: work of a device, in order."""

    @property
    def ptr(self) -> int: ...

    def synchronize(self) -> None: ...

    def wait_event(self, event: Any) -> None:
        """Make later work of this stream wait for the event."""

    def begin_capture(self) -> None: ...

    def end_capture(self) -> Graph: ...


class Graph(Protocol):
    """A captured CUDA graph."""

    def launch(self, stream: Any) -> None: ...


class Memory(Protocol):
    """Memory of a device. It is freed with the object."""

    @property
    def ptr(self) -> int: ...


class Cuda:
    """The GPUs of this process, through CuPy 14 or newer (13 if no stream needs a priority). Thread-safe.

    Memory, streams and events are made on the current device.
    """

    def __init__(self, cupy: Any):
        self._cupy = cupy
        self._cuda = cupy.cuda
        self._runtime = cupy.cuda.runtime

    def count(self) -> int:
        """Return the number of GPUs. Raises if the driver does not work."""
        return int(self._runtime.getDeviceCount())

    def capability(self, device: int) -> tuple[int, int]:
        digits = str(self._cuda.Device(device).compute_capability)  # "90", "120"
        return int(digits[:-1]), int(digits[-1])

    def on(self, device: int) -> AbstractContextManager[Any]:
        """Make the device the current one of this thread inside the with statement."""
        made: AbstractContextManager[Any] = self._cuda.Device(device)
        return made

    def stream(self, priority: int) -> Stream:
        if priority == DEFAULT_PRIORITY:
            made: Stream = self._cuda.Stream(non_blocking=True)
        else:
            made = self._cuda.Stream(non_blocking=True, priority=priority)
        return made

    def event(self, busy: bool) -> Event:
        """Make an event. With `busy`, its `synchronize` polls in a loop instead of sleeping."""
        made: Event = self._cuda.Event(block=not busy, disable_timing=True)
        return made

    def memory(self, size: int, stream: Stream) -> Memory:
        """Allocate memory whose next use is on `stream`."""
        with stream:  # type: ignore[attr-defined]  # CuPy's pool orders by the current stream
            made: Memory = self._cuda.alloc(size)
        return made

    def input_memory(self, size: int, stream: Stream) -> Memory:
        """Allocate memory as `memory` does, in the server's pool of the current device if that has room.

        Let it go only when no work of the device uses it: the pool gives it away at once.
        """
        found: Memory | None = pools.current().on_gpu(int(self._runtime.getDevice()), size)
        return self.memory(size, stream) if found is None else found

    def pinned(self, size: int) -> np.ndarray:
        """Allocate pinned host memory, uint8[size]: in the server's pool, or without one in that of CuPy.

        It is ordinary memory if the pool is full. It is freed with the array: keep that until no work of the
        device uses it.
        """
        found = pools.current().on_host(size)
        if found is None:
            found = np.frombuffer(self._cuda.alloc_pinned_memory(size), np.uint8, size)
        return found

    def to_device(self, target: int, source: int, size: int, stream: Stream) -> None:
        self._copy(target, source, size, self._runtime.memcpyHostToDevice, stream)

    def to_host(self, target: int, source: int, size: int, stream: Stream) -> None:
        self._copy(target, source, size, self._runtime.memcpyDeviceToHost, stream)

    def within(self, target: int, source: int, size: int, stream: Stream) -> None:
        """Copy from device memory to device memory."""
        self._copy(target, source, size, self._runtime.memcpyDeviceToDevice, stream)

    def trim(self) -> None:
        """Return the unused memory of CuPy's pools, on the device and pinned on the host, to the driver."""
        self._cupy.get_default_memory_pool().free_all_blocks()
        self._cupy.get_default_pinned_memory_pool().free_all_blocks()

    def _copy(self, target: int, source: int, size: int, kind: int, stream: Stream) -> None:
        self._runtime.memcpyAsync(target, source, size, kind, stream.ptr)
