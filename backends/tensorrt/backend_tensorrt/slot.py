"""The memory of one batch under way.

instance ─► [Slot] ─► run.  A slot is used by one batch at a time, from the copy of its inputs to that of its
outputs, so that its memory is never written while a batch before still reads it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from backend_tensorrt.cuda import Cuda, Graph, Memory, Stream


class Buffer:
    """Memory of a device for one tensor, which only grows.

    generation   how often it has moved
    """

    def __init__(self, cuda: Cuda, stream: Stream):
        self._cuda = cuda
        self._stream = stream
        self._memory: Memory | None = None
        self.capacity = 0
        self.generation = 0

    def at_least(self, size: int) -> int:
        """Its address, with room for `size` bytes; what was in it is lost if it must move."""
        size = max(1, size)  # TensorRT wants an address for empty tensors too
        if self._memory is None or size > self.capacity:
            self._memory = None  # first: both may not fit
            self._memory = self._cuda.memory(size, self._stream)
            self.capacity = size
            self.generation += 1
        return self._memory.ptr


class Slot:
    """Buffers, staging memory, marks and graphs of one batch under way. Current device: the instance's.

    copied, computed, done
            marks: inputs are on the device; the engine has run; outputs are where they go
    graphs  by optimization profile and shapes; valid as long as no buffer has moved
    held    what must live until `done`: memory that copies read and the engine uses
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
        """The buffer of a tensor."""
        key = name, is_input
        if key not in self._buffers:
            self._buffers[key] = Buffer(self._cuda, self._streams[is_input])
        return self._buffers[key]

    def staging(self, name: str, size: int) -> np.ndarray:
        """Host memory that the device reaches by itself, for an input: uint8[size]."""
        found = self._staging.get(name)
        if found is None or found.size < size:
            found = self._staging[name] = self._cuda.pinned(max(1, size))
        return found[:size]

    def graph(self, key: Any) -> Graph | None:
        """A graph that was kept, unless a buffer that it uses has moved since."""
        generation, graph = self._graphs.get(key, (-1, None))
        return graph if generation == self._generation else None

    def keep(self, key: Any, graph: Graph) -> None:
        """Keep a graph of the buffers as they are now."""
        self._graphs[key] = self._generation, graph

    @property
    def _generation(self) -> int:
        return sum(buffer.generation for buffer in self._buffers.values())
