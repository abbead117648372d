"""The memory of one batch in flight.

instance ─► [Slot] ─► run.  One batch uses a slot from the copy of its inputs to the copy of its outputs. No
batch writes to memory that an earlier batch still reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from backend_tensorrt.cuda import Cuda, Graph, Memory, Stream


class Buffer:
    """Memory of a device for one tensor. It only grows, and only while no batch uses it.

    capacity     size in bytes
    generation   number of allocations
    """

    def __init__(self, allocate: Callable[[int, Stream], Memory], stream: Stream):
        self._allocate = allocate
        self._stream = stream
        self._memory: Memory | None = None
        self.capacity = 0
        self.generation = 0

    def at_least(self, size: int) -> int:
        """Return the address of at least `size` bytes. The content is lost if the buffer must grow."""
        size = max(1, size)  # TensorRT needs an address for empty tensors, too
        if self._memory is None or size > self.capacity:
            self._memory = None  # free it first: the device may not have memory for both
            self._memory = self._allocate(size, self._stream)
            self.capacity = size
            self.generation += 1
        return self._memory.ptr


class Slot:
    """Buffers, staging memory, events and graphs of one batch in flight.

    The instance's GPU must be the current device of the calling thread.

    copied     event: the inputs are on the device
    computed   event: the engine has run
    done       event: the outputs are copied
    held       objects that must live until `done`: memory that copies read and the engine uses
    """

    def __init__(self, cuda: Cuda, inputs: Stream, compute: Stream, *, busy: bool):
        self._cuda = cuda
        self._streams = {True: inputs, False: compute}
        self.copied = cuda.event(busy)
        self.computed = cuda.event(busy)
        self.done = cuda.event(busy)
        self.held: list[Any] = []
        self._buffers: dict[tuple[str, bool], Buffer] = {}
        self._staging: dict[str, np.ndarray] = {}
        self._graphs: dict[Any, tuple[int, Graph]] = {}

    def buffer(self, name: str, is_input: bool) -> Buffer:
        """Return the slot's buffer of a tensor. The first call makes the buffer, without memory."""
        key = name, is_input
        if key not in self._buffers:
            allocate = self._cuda.input_memory if is_input else self._cuda.memory
            self._buffers[key] = Buffer(allocate, self._streams[is_input])
        return self._buffers[key]

    def staging(self, name: str, size: int) -> np.ndarray:
        """Return pinned host memory for an input: uint8[size]. Later calls for the same input reuse it."""
        found = self._staging.get(name)
        if found is None or found.size < size:
            found = self._staging[name] = self._cuda.pinned(max(1, size))
        return found[:size]

    def graph(self, key: Any) -> Graph | None:
        """Return a graph that was kept; None if there is none, or if a buffer of the slot has moved since."""
        generation, graph = self._graphs.get(key, (-1, None))
        return graph if generation == self._generation else None

    def keep(self, key: Any, graph: Graph) -> None:
        """Keep a graph that uses the current addresses of the buffers."""
        self._graphs[key] = self._generation, graph

    @property
    def _generation(self) -> int:
        return sum(buffer.generation for buffer in self._buffers.values())
