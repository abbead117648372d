"""One execution context: set shapes and addresses, then enqueue.

run ─► [Context] ─► TensorRT.  An instance has a context for each of its optimization profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend_tensorrt.cuda import Memory, Stream
from backend_tensorrt.facts import Port
from backend_tensorrt.loading import Engine, Loader
from backend_tensorrt.slot import Buffer, Slot

Shape = tuple[int, ...]


class Failure(Exception):
    """A call of TensorRT failed. The text is what TensorRT logged, else which call failed."""


@dataclass
class Allocation:
    """The memory of one output.

    known      shape; unused if there is an allocator
    fixed      address; unused if there is an allocator
    host       the array that the engine writes; only a shape tensor has one
    allocator  has address and shape after the enqueue; only an output whose shape depends on values has one
    """

    port: Port
    known: Shape = ()
    fixed: int = 0
    host: np.ndarray | None = None
    allocator: Any = None

    @property
    def shape(self) -> Shape:
        return self.known if self.allocator is None else self.allocator.shape

    @property
    def address(self) -> int:
        return self.fixed if self.allocator is None else self.allocator.address


class Context:
    """A tensorrt.IExecutionContext with one optimization profile. Not thread-safe."""

    def __init__(self, loader: Loader, engine: Engine, profile: int, strategy: str, stream: Stream):
        trt = loader.library.trt
        self._reports = loader.reports
        self._facts = engine.facts
        self._allocator = allocator_class(trt)
        self._reports.take()
        kind = getattr(trt.ExecutionContextAllocationStrategy, strategy)
        made = engine.engine.create_execution_context(kind)
        if made is None:
            raise self._failure("no execution context could be made")
        self._context = made
        self._must(made.set_optimization_profile_async(profile, stream.ptr), "profile")
        stream.synchronize()
        # Of outputs; the context refers to them until others come.
        self._allocators: dict[str, Any] = {}
        self._values: dict[str, np.ndarray] = {}  # the engine reads these arrays without a copy

    def shape(self, shapes: Mapping[str, Shape], values: Mapping[str, np.ndarray]) -> None:
        """Set the shapes of the inputs, and the values of shape tensors, for the next execution.

        Raises Failure if TensorRT refuses one.
        """
        context = self._context
        self._values = {}
        for name, port in self._facts.inputs.items():
            self._must(context.set_input_shape(name, shapes[name]), f"shape of '{name}'")
            if port.on_host:
                array = self._values[name] = np.ascontiguousarray(values[name])
                self._must(context.set_tensor_address(name, array.ctypes.data), f"'{name}'")
        lacking = context.infer_shapes()
        if lacking:
            raise self._failure(f"not enough is said of {', '.join(lacking)}")

    def output_size(self, name: str) -> int:
        """Return the bytes of an output; -1 for a shape tensor, or if they depend on the inputs' values."""
        port, shape = self._facts.outputs[name], self._shape_of(name)
        return -1 if min(shape, default=0) < 0 or port.on_host else port.byte_size(shape)

    def bind(
        self, slot: Slot, addresses: Mapping[str, int], fresh: Mapping[str, Memory]
    ) -> dict[str, Allocation]:
        """Set the addresses of inputs and outputs. Return the memory of each output.

        addresses   input name → address
        fresh       output name → memory; other outputs use the slot's buffers
        Raises Failure if TensorRT refuses an address.
        """
        for name, address in addresses.items():
            self._must(self._context.set_tensor_address(name, address), f"'{name}'")
        slot.held.extend((self._values, fresh))
        return {
            name: self._bind_output(slot, port, fresh.get(name))
            for name, port in self._facts.outputs.items()
        }

    def _bind_output(self, slot: Slot, port: Port, fresh: Memory | None) -> Allocation:
        context, name, shape = self._context, port.name, self._shape_of(port.name)
        assert port.dtype is not None
        buffer = slot.buffer(name, False)
        if min(shape, default=0) < 0:
            allocator = self._allocator(buffer)
            self._must(context.set_output_allocator(name, allocator), f"'{name}'")
            self._allocators[name] = allocator
            return Allocation(port, allocator=allocator)
        if name in self._allocators:
            self._must(context.set_output_allocator(name, None), f"'{name}'")
            del self._allocators[name]
        host = None
        if port.on_host:
            host = np.zeros(shape, port.dtype.numpy)
            address = int(host.ctypes.data)
        elif fresh is not None:
            address = fresh.ptr
        else:
            address = buffer.at_least(port.byte_size(shape))
        self._must(context.set_tensor_address(name, address), f"'{name}'")
        return Allocation(port, shape, address, host)

    def enqueue(self, stream: Stream) -> None:
        """Start the execution on a stream. Raises Failure if it does not start."""
        self._reports.take()
        if not self._context.execute_async_v3(stream.ptr):
            raise self._failure("the execution could not be started")

    def _shape_of(self, name: str) -> Shape:
        return tuple(int(size) for size in self._context.get_tensor_shape(name))

    def _must(self, done: bool, what: str) -> None:
        if not done:
            raise self._failure(f"it refuses the {what}")

    def _failure(self, otherwise: str) -> Failure:
        return Failure(self._reports.take() or otherwise)


def allocator_class(trt: Any) -> Any:
    """Return a subclass of IOutputAllocator, whose objects take the memory of one output from a Buffer.

    TensorRT asks an object for memory, and tells it the shape, when it knows the size of the output.
    """

    class Allocator(trt.IOutputAllocator):  # type: ignore[misc]
        def __init__(self, buffer: Buffer) -> None:
            trt.IOutputAllocator.__init__(self)
            self._buffer = buffer
            self.shape: Shape = ()
            self.address = 0

        def reallocate_output(
            self, tensor_name: str, memory: int, size: int, alignment: int
        ) -> int:
            self.address = self._buffer.at_least(size)
            return self.address

        def reallocate_output_async(
            self, tensor_name: str, memory: int, size: int, alignment: int, stream: int
        ) -> int:
            return self.reallocate_output(tensor_name, memory, size, alignment)

        def notify_shape(self, tensor_name: str, shape: Any) -> None:
            self.shape = tuple(int(size) for size in shape)

    return Allocator
