"""The inputs of a batch: shapes and sources of the bytes.

batch ─► [feed_of] ─► run.  No calls of CUDA or TensorRT: device arrays give their addresses by DLPack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend_tensorrt.facts import Facts, Port
from core import dtypes
from core.batch import Batch
from core.config import ModelConfig
from core.devices import dlpack
from core.dtypes import DataType
from core.ragged import batch_inputs
from core.tensor import Tensor

_ALIGNMENT = 256  # bytes; TensorRT needs it for every address


@dataclass(frozen=True)
class Part:
    """One piece of an input: the elements of a request, or of the whole batch for a batch_input.

    source    a flat buffer in host memory, or the owner of device memory
    address   address in the memory of the GPU; 0 if the source is in host memory
    size      bytes
    """

    source: Any
    address: int
    size: int


@dataclass(frozen=True)
class Input:
    """One input of the engine for a batch: its parts, one after the other.

    shape   shape for the engine
    """

    port: Port
    shape: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def on_host(self) -> bool:
        """Whether all parts are in host memory."""
        return all(not part.address for part in self.parts)

    @property
    def in_place(self) -> int:
        """Return the address of the part if it is the only one and aligned to 256 bytes, else 0."""
        if len(self.parts) != 1 or self.parts[0].address % _ALIGNMENT:
            return 0
        return self.parts[0].address


@dataclass(frozen=True)
class Feed:
    """All inputs of a batch.

    inputs   name → input; shape tensors are not among them
    shapes   name → shape, also of shape tensors
    values   name of a shape tensor → its values in the engine's datatype
    rows     size of the batch, 0 for a model without a batch dimension
    """

    inputs: Mapping[str, Input]
    shapes: Mapping[str, tuple[int, ...]]
    values: Mapping[str, np.ndarray]
    rows: int

    @property
    def numbers(self) -> dict[str, tuple[int, ...]]:
        """The values of the shape tensors as tuples, to compare with optimization profiles."""
        return {name: tuple(array.ravel().tolist()) for name, array in self.values.items()}


def feed_of(batch: Batch, config: ModelConfig, facts: Facts, device: int) -> Feed:
    """Return the inputs of a batch for an engine on GPU `device`.

    Raises KeyError if the requests lack an input.
    """
    batches = bool(config.max_batch_size)
    made = batch_inputs(config, batch) if config.batch_input else {}
    inputs: dict[str, Input] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    values: dict[str, np.ndarray] = {}
    for name, port in facts.inputs.items():
        if port.on_host:
            tensor = None if name in made else batch.requests[0].inputs[name]
            values[name] = _values(made[name] if tensor is None else tensor.array, port)
            if batches and tensor is not None:
                values[name] = np.insert(values[name], 0, batch.rows)
            shapes[name] = values[name].shape if port.dims else ()
            continue
        if name in made:
            array = np.ascontiguousarray(made[name])
            found = Input(port, array.shape, (Part(array, 0, array.nbytes),))
        else:
            found = _gathered(batch, name, port, batches, device)
        inputs[name], shapes[name] = found, found.shape
    return Feed(inputs, shapes, values, batch.rows if batches else 0)


def _values(array: np.ndarray, port: Port) -> np.ndarray:
    assert port.dtype is not None
    return np.array(array, port.dtype.numpy).reshape(-1)


def _gathered(batch: Batch, name: str, port: Port, batches: bool, device: int) -> Input:
    tensors = [request.inputs[name] for request in batch.requests]
    parts = tuple(_part(tensor, device) for tensor in tensors)
    spec = batch.signature.inputs.get(name)
    if spec is not None and spec.ragged:
        return Input(port, (sum(tensor.count for tensor in tensors),), parts)
    shape = tensors[0].shape
    if batches:
        shape = (sum(tensor.shape[0] for tensor in tensors), *shape[1:])
    if not port.dims:
        shape = ()  # clients see a scalar as [1]
    return Input(port, shape, parts)


def _part(tensor: Tensor, device: int) -> Part:
    here = (dlpack.CUDA, device), (dlpack.CUDA_MANAGED, device)
    if tensor.device in here:
        try:
            capsule = dlpack.exported(tensor.value)
            seen = dlpack.array_info(capsule)
        except (BufferError, TypeError, RuntimeError, ValueError):
            pass  # the library cannot export this array: copy it through the host
        else:
            if seen.in_order:
                return Part((capsule, tensor), seen.address, tensor.byte_size)
    raw = tensor.raw
    return Part(raw, 0, memoryview(raw).nbytes)


def address_of(buffer: Any) -> int:
    """Return the address of a buffer in host memory; 0 for an empty one."""
    array = np.frombuffer(buffer, np.uint8) if memoryview(buffer).nbytes else None
    return 0 if array is None else int(array.ctypes.data)


def contiguous(parts: tuple[Part, ...]) -> int:
    """Return the address of parts that are adjacent in host memory, in order.

    Returns 0 if they are not adjacent, or if a part is empty or on the device.
    """
    start = end = 0
    for part in parts:
        if part.address or not part.size:
            return 0
        address = address_of(part.source)
        if end and address != end:
            return 0
        start, end = start or address, address + part.size
    return start


def padded(
    source: np.ndarray, shape: tuple[int, ...], most: tuple[int, ...], dtype: DataType
) -> np.ndarray:
    """Return the bytes (uint8) of a tensor padded with zeros at the end of each dimension to shape `most`.

    source   bytes of the tensor: uint8
    shape    its shape
    """
    kind = dtypes.UINT16.numpy if dtype is dtypes.BF16 else dtype.numpy
    whole = np.zeros(most, kind)
    whole[tuple(slice(size) for size in shape)] = source.view(kind).reshape(shape)
    return whole.reshape(-1).view(np.uint8)
