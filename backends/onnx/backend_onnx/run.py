"""One run of a session: by feed, or by binding.

feed ─► [run] ─► outputs.  Tensors on the host go in by feed: on CPU binding cost 10 µs more for each
run and saved nothing, for outputs of 64 bytes as of 16 MB (onnxruntime 1.31). Binding is for sessions
on a device, which copy straight between it and our arrays, and for BF16, which numpy does not have.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from backend_onnx.graph import Graph, TensorInfo
from core import dtypes
from core.errors import unsupported

_BFLOAT16 = 16  # of onnx.TensorProto.DataType


class Run(Protocol):
    """One run; `rows` is the size of the batch, 0 for a model without a batch dimension."""

    def __call__(
        self, feed: Mapping[str, np.ndarray], names: list[str], rows: int
    ) -> dict[str, np.ndarray]: ...


def run_of(session: Any, graph: Graph, options: Any, *, on_host: bool, model: str) -> Run:
    """How the session is run.

    on_host   whether it computes in the host's memory
    Raises CoreError(UNSUPPORTED) for BF16 and text in one model: text cannot be bound.
    """
    infos = (*graph.inputs.values(), *graph.overridable.values(), *graph.outputs.values())
    has_text = any(info.dtype is dtypes.BYTES for info in infos)
    has_bfloat = any(info.dtype is dtypes.BF16 for info in infos)
    if has_bfloat and has_text:
        raise unsupported(
            f"model '{model}' has tensors of text and of bfloat16, which ONNX Runtime's Python "
            "interface cannot pass together; end the graph with a Cast to FP32"
        )
    if has_text or (on_host and not has_bfloat):
        return FeedRun(session, options)
    return BoundRun(session, graph, options)


class FeedRun:
    """Arrays in, arrays out."""

    def __init__(self, session: Any, options: Any):
        self._run = session.run
        self._options = options

    def __call__(
        self, feed: Mapping[str, np.ndarray], names: list[str], rows: int
    ) -> dict[str, np.ndarray]:
        return dict(zip(names, self._run(names, feed, self._options), strict=True))


class BoundRun:
    """Inputs and outputs bound to our arrays. One instance's: its runs never overlap."""

    def __init__(self, session: Any, graph: Graph, options: Any):
        self._session = session
        self._binding = session.io_binding()
        self._options = options
        self._outputs = graph.outputs
        self._types = {
            name: info.dtype for name, info in {**graph.inputs, **graph.overridable}.items()
        }

    def __call__(
        self, feed: Mapping[str, np.ndarray], names: list[str], rows: int
    ) -> dict[str, np.ndarray]:
        binding = self._binding
        try:
            arrays = [self._bind_input(name, array) for name, array in feed.items()]
            buffers = {name: self._bind_output(self._outputs[name], rows) for name in names}
            self._session.run_with_iobinding(binding, self._options)
            del arrays  # alive until here: a binding does not hold what it points to
            found = binding.get_outputs()
            return {
                name: _array_of(value) if buffer is None else buffer
                for (name, buffer), value in zip(buffers.items(), found, strict=True)
            }
        finally:
            binding.clear_binding_inputs()
            binding.clear_binding_outputs()

    def _bind_input(self, name: str, array: np.ndarray) -> np.ndarray:
        array = np.ascontiguousarray(array)
        if self._types[name] is dtypes.BF16:
            shape = list(array.shape)
            self._binding.bind_input(name, "cpu", 0, _BFLOAT16, shape, array.ctypes.data)
        else:
            self._binding.bind_cpu_input(name, array)
        return array

    def _bind_output(self, info: TensorInfo, rows: int) -> np.ndarray | None:
        """Let the output be written into an array of ours; None where its shape is not known yet."""
        shape = (rows, *info.dims[1:]) if rows and info.batches else info.dims
        if -1 in shape:
            self._binding.bind_output(info.name, "cpu")
            return None
        assert info.dtype is not None
        buffer = np.empty(shape, info.dtype.numpy)
        kind = _BFLOAT16 if info.dtype is dtypes.BF16 else info.dtype.numpy.type
        self._binding.bind_output(info.name, "cpu", 0, kind, list(shape), buffer.ctypes.data)
        return buffer


def _array_of(value: Any) -> np.ndarray:
    """A copy of what ONNX Runtime holds, which goes with the binding."""
    if value.element_type() != _BFLOAT16:
        return np.asarray(value.numpy())
    shape = tuple(value.shape())
    found = np.empty(shape, dtypes.BF16.numpy)
    if found.size:
        ctypes.memmove(found.ctypes.data, value.data_ptr(), found.nbytes)
    return found
