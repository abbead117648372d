"""All that is asked of CUDA, as protocols; with CuPy behind them.

slot, run, instance ─► [Cuda] ─► CuPy ─► the GPU.  Tests play it. Addresses are numbers; sizes are bytes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

MAX_PRIORITY, DEFAULT_PRIORITY = -100, 0  # CUDA takes the nearest that there is; 0 is the lowest


class Event(Protocol):
    """A mark in a stream."""

    def record(self, stream: Any) -> None:
        """Put the mark behind all that the stream has been given so far."""

    def synchronize(self) -> None:
        """Wait until the stream has come to the mark. Raises what went wrong on the device until there."""


class Stream(Protocol):
    """Work of a device, in order."""

    @property
    def ptr(self) -> int: ...

    def synchronize(self) -> None: ...

    def wait_event(self, event: Any) -> None:
        """What is given from now on begins behind the mark."""

    def begin_capture(self) -> None: ...

    def end_capture(self) -> Graph: ...


class Graph(Protocol):
    """Work that was captured."""

    def launch(self, stream: Any) -> None: ...


class Memory(Protocol):
    """Memory of a device; given back when nobody holds the object."""

    @property
    def ptr(self) -> int: ...


class Cuda(Protocol):
    """The GPUs of this process. Any thread; memory, streams and events are made on the current device."""

    def count(self) -> int:
        """How many GPUs there are. Raises if the driver cannot be asked."""

    def capability(self, device: int) -> tuple[int, int]: ...

    def on(self, device: int) -> AbstractContextManager[Any]:
        """The device is the current one of this thread."""

    def stream(self, priority: int) -> Stream: ...

    def event(self, busy: bool) -> Event:
        """busy   who waits for it does so in a loop, instead of sleeping"""

    def memory(self, size: int, stream: Stream) -> Memory:
        """Memory whose next use is on `stream`."""

    def pinned(self, size: int) -> np.ndarray:
        """Host memory that the device reaches by itself, uint8[size]; given back with the array."""

    def to_device(self, target: int, source: int, size: int, stream: Stream) -> None: ...

    def to_host(self, target: int, source: int, size: int, stream: Stream) -> None: ...

    def within(self, target: int, source: int, size: int, stream: Stream) -> None:
        """From the device's memory to the device's memory."""

    def trim(self) -> None:
        """Give back to the driver what is kept for later and used by nobody."""


class CupyCuda:
    """Cuda, by CuPy 14 or newer (13 where no stream needs a priority)."""

    def __init__(self, cupy: Any):
        self._cupy = cupy
        self._cuda = cupy.cuda
        self._runtime = cupy.cuda.runtime

    def count(self) -> int:
        return int(self._runtime.getDeviceCount())

    def capability(self, device: int) -> tuple[int, int]:
        digits = str(self._cuda.Device(device).compute_capability)  # "90", "120"
        return int(digits[:-1]), int(digits[-1])

    def on(self, device: int) -> AbstractContextManager[Any]:
        made: AbstractContextManager[Any] = self._cuda.Device(device)
        return made

    def stream(self, priority: int) -> Stream:
        if priority == DEFAULT_PRIORITY:
            made: Stream = self._cuda.Stream(non_blocking=True)
        else:
            made = self._cuda.Stream(non_blocking=True, priority=priority)
        return made

    def event(self, busy: bool) -> Event:
        made: Event = self._cuda.Event(block=not busy, disable_timing=True)
        return made

    def memory(self, size: int, stream: Stream) -> Memory:
        with stream:  # type: ignore[attr-defined]  # CuPy's pool orders by the current stream
            made: Memory = self._cuda.alloc(size)
        return made

    def pinned(self, size: int) -> np.ndarray:
        return np.frombuffer(self._cuda.alloc_pinned_memory(size), np.uint8, size)

    def to_device(self, target: int, source: int, size: int, stream: Stream) -> None:
        self._copy(target, source, size, self._runtime.memcpyHostToDevice, stream)

    def to_host(self, target: int, source: int, size: int, stream: Stream) -> None:
        self._copy(target, source, size, self._runtime.memcpyDeviceToHost, stream)

    def within(self, target: int, source: int, size: int, stream: Stream) -> None:
        self._copy(target, source, size, self._runtime.memcpyDeviceToDevice, stream)

    def trim(self) -> None:
        self._cupy.get_default_memory_pool().free_all_blocks()
        self._cupy.get_default_pinned_memory_pool().free_all_blocks()

    def _copy(self, target: int, source: int, size: int, kind: int, stream: Stream) -> None:
        self._runtime.memcpyAsync(target, source, size, kind, stream.ptr)
