"""Inputs, outputs and profiles of an engine, read once, without TensorRT's types.

ICudaEngine ─► [Facts] ─► complete, check, profiles, graphs, feed, slot.  All decisions depend on facts only,
so that they can be tested without a GPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from core import dtypes
from core.dtypes import DataType

# Name in tensorrt.DataType → datatype. FP8, which the protocol lacks, is transferred as bytes.
_DTYPES = {
    "FLOAT": dtypes.FP32,
    "HALF": dtypes.FP16,
    "BF16": dtypes.BF16,
    "INT8": dtypes.INT8,
    "INT32": dtypes.INT32,
    "INT64": dtypes.INT64,
    "BOOL": dtypes.BOOL,
    "UINT8": dtypes.UINT8,
    "FP8": dtypes.UINT8,
}


@dataclass(frozen=True)
class Bounds:
    """The limits and the optimum of an optimization profile for the dims of a tensor, or for the values of a
    shape tensor."""

    least: tuple[int, ...]
    best: tuple[int, ...]
    most: tuple[int, ...]

    def hold(self, found: tuple[int, ...]) -> bool:
        """Return whether dims (or values) are within the limits."""
        return len(found) == len(self.least) and all(
            low <= each <= high
            for low, each, high in zip(self.least, found, self.most, strict=True)
        )

    def __str__(self) -> str:
        return f"{list(self.least)} to {list(self.most)}"


@dataclass(frozen=True)
class Port:
    """One input or output of an engine.

    type       type name of TensorRT: "BF16"
    dtype      datatype of the protocol; None if it cannot carry the type
    dims       with the batch dimension; -1 for any size
    on_host    a shape tensor: the engine reads or writes its values in host memory
    linear     elements are in C order; otherwise in vectors of `lanes` elements along dimension `vector`
    format     description by TensorRT
    shapes     of an input: its Bounds by optimization profile; () for an output
    values     of an input that is a shape tensor: Bounds by optimization profile, None if a profile has none
    """

    name: str
    is_input: bool
    type: str
    dtype: DataType | None
    dims: tuple[int, ...]
    on_host: bool = False
    linear: bool = True
    format: str = ""
    vector: int = -1
    lanes: int = 1
    shapes: tuple[Bounds, ...] = ()
    values: tuple[Bounds | None, ...] = ()

    def byte_size(self, shape: tuple[int, ...]) -> int:
        """Return the bytes of a tensor of this shape, padding of its vectors included."""
        assert self.dtype is not None
        padded = list(shape)
        if 0 <= self.vector < len(padded):
            padded[self.vector] = -(-padded[self.vector] // self.lanes) * self.lanes
        return math.prod(padded) * self.dtype.byte_size


@dataclass(frozen=True)
class Facts:
    """An engine's inputs and outputs, in its order, and the number of its optimization profiles."""

    ports: tuple[Port, ...]
    profile_count: int

    @property
    def inputs(self) -> dict[str, Port]:
        return {port.name: port for port in self.ports if port.is_input}

    @property
    def outputs(self) -> dict[str, Port]:
        return {port.name: port for port in self.ports if not port.is_input}

    @property
    def batches(self) -> bool:
        """Whether the first dimension can be the batch: it has any size in every input and output.

        Shape tensors do not count. False if there is no other input, or no other output.
        """
        tensors = [port for port in self.ports if not port.on_host]
        return (
            any(port.is_input for port in tensors)
            and any(not port.is_input for port in tensors)
            and all(port.dims[:1] == (-1,) for port in tensors)
        )

    @property
    def most_rows(self) -> int:
        """The largest batch that an optimization profile allows; 0 if the engine does not batch."""
        if not self.batches:
            return 0
        tensors = [port for port in self.ports if port.is_input and not port.on_host]
        return max(
            min(port.shapes[i].most[0] for port in tensors) for i in range(self.profile_count)
        )


def facts_of(engine: Any, trt: Any) -> Facts:
    """Return the facts of a tensorrt.ICudaEngine."""
    count = int(engine.num_optimization_profiles)
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    return Facts(tuple(_port(engine, trt, name, count) for name in names), count)


def _port(engine: Any, trt: Any, name: str, profile_count: int) -> Port:
    is_input = engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
    on_host = engine.get_tensor_location(name) == trt.TensorLocation.HOST
    kind = engine.get_tensor_dtype(name).name
    # The enumeration of get_tensor_format is missing in the lean runtime. All runtimes have its description.
    described = str(engine.get_tensor_format_desc(name))
    vector = int(engine.get_tensor_vectorized_dim(name))
    dims = tuple(int(size) for size in engine.get_tensor_shape(name))
    profiles = range(profile_count) if is_input else range(0)
    return Port(
        name=name,
        is_input=is_input,
        type=kind,
        dtype=_DTYPES.get(kind),
        dims=dims,
        on_host=on_host,
        linear=vector < 0 and ("kLINEAR" in described or "(k" not in described),
        format=described,
        vector=vector,
        lanes=max(1, int(engine.get_tensor_components_per_element(name))) if vector >= 0 else 1,
        shapes=tuple(_shapes(engine, name, dims, i) for i in profiles),
        values=tuple(_values(engine, name, i) for i in profiles) if on_host else (),
    )


def _bounds(found: Any) -> Bounds:
    least, best, most = (tuple(int(size) for size in each) for each in found)
    return Bounds(least, best, most)


def _shapes(engine: Any, name: str, dims: tuple[int, ...], profile: int) -> Bounds:
    if -1 not in dims:
        return Bounds(dims, dims, dims)  # a profile may leave out a tensor of fixed dims
    return _bounds(engine.get_tensor_profile_shape(name, profile))


def _values(engine: Any, name: str, profile: int) -> Bounds | None:
    # The bindings exchange the names of the arguments, so pass them by position: profile, then name.
    found = engine.get_tensor_profile_values(profile, name)
    return _bounds(found) if found else None
