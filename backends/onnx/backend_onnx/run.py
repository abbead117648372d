"""One run of a session: by feed, or by binding.

feed ─► [run] ─► outputs.  Sessions on the host use a feed: on the CPU, a binding costs 10 µs more per run and
saves nothing, for outputs of 64 bytes and of 16 MB alike (onnxruntime 1.31). Sessions on a device use a
binding, which reads inputs there, leaves outputs there, or copies directly from and to our arrays. Models
with BF16, which numpy lacks, use a binding, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from backend_onnx.device import OnDevice, Place
from backend_onnx.graph import Graph
from core import dtypes
from core.devices import dlpack
from core.errors import unsupported

_BFLOAT16 = 16  # of onnx.TensorProto.DataType


def run_of(
    session: Any, graph: Graph, options: Any, *, place: Place | None, model: str
) -> FeedRun | BoundRun:
    """Return an object that runs the session, once for each call. A call returns {output name: array}.

    place   device on which the session computes, None for the host
    Raises CoreError(UNSUPPORTED) for a model with BF16 and text, because text cannot be bound.

    The arguments of a call:

    feed      input name → numpy array, or an array on any device if the object's `takes_device` is True
    names     names of the wanted outputs
    rows      size of the batch, 0 for a model without a batch dimension
    staying   names of outputs that stay on the session's device; a FeedRun, a session on the host, and
              outputs of BF16 return host arrays in spite of it
    """
    infos = (*graph.inputs.values(), *graph.overridable.values(), *graph.outputs.values())
    has_text = any(info.dtype is dtypes.BYTES for info in infos)
    has_bfloat = any(info.dtype is dtypes.BF16 for info in infos)
    if has_bfloat and has_text:
        raise unsupported(
            f"model '{model}' has tensors of text and of bfloat16, which ONNX Runtime's Python "
            "interface cannot pass together; end the graph with a Cast to FP32"
        )
    if has_text or (place is None and not has_bfloat):
        return FeedRun(session, options)
    return BoundRun(session, graph, options, place)


class FeedRun:
    """A run that passes host arrays to ONNX Runtime and returns its host arrays."""

    takes_device = False

    def __init__(self, session: Any, options: Any):
        self._run = session.run
        self._options = options

    def __call__(
        self,
        feed: Mapping[str, Any],
        names: list[str],
        rows: int,
        staying: Collection[str] = (),
    ) -> dict[str, Any]:
        found = self._run(names, feed, self._options)
        if len(names) == 1:
            return {names[0]: found[0]}
        return dict(zip(names, found, strict=True))


class BoundRun:
    """A run with inputs and outputs bound to our arrays or to arrays on the device.

    Not thread-safe: one instance owns it, and its runs never overlap. ONNX Runtime waits for the device
    before a run returns.
    """

    def __init__(self, session: Any, graph: Graph, options: Any, place: Place | None = None):
        self.takes_device = place is not None
        self._place = place
        self._session = session
        self._binding = session.io_binding()
        self._options = options
        self._outputs = graph.outputs
        self._types = {
            name: info.dtype for name, info in {**graph.inputs, **graph.overridable}.items()
        }

    def __call__(
        self,
        feed: Mapping[str, Any],
        names: list[str],
        rows: int,
        staying: Collection[str] = (),
    ) -> dict[str, Any]:
        binding = self._binding
        try:
            arrays = [self._bind_input(name, array) for name, array in feed.items()]
            stays = {name for name in names if name in staying and self._can_stay(name)}
            buffers = {name: self._bind_output(name, rows, name in stays) for name in names}
            self._session.run_with_iobinding(binding, self._options)
            del arrays  # keeps the inputs alive until here: a binding holds addresses only
            found = binding.get_outputs()
            return {
                name: self._output(name, value, name in stays) if buffer is None else buffer
                for (name, buffer), value in zip(buffers.items(), found, strict=True)
            }
        finally:
            binding.clear_binding_inputs()
            binding.clear_binding_outputs()

    def _can_stay(self, name: str) -> bool:
        return self._place is not None and self._outputs[name].dtype is not dtypes.BF16

    def _output(self, name: str, value: Any, stays: bool) -> Any:
        info = self._outputs[name]
        if stays and self._place is not None and info.dtype is not None:
            return OnDevice(value, info.dtype, self._place)
        return _array_of(value)

    def _bind_input(self, name: str, array: Any) -> Any:
        """Bind an input in its own memory if the session can read it there, else a copy on the host.

        Returns the object that must live until the end of the run.
        """
        if not isinstance(array, np.ndarray):
            if (capsule := self._bound_there(name, array)) is not None:
                return capsule
            array = dlpack.to_host(array)
        array = np.ascontiguousarray(array)
        if self._types[name] is dtypes.BF16:
            shape = list(array.shape)
            self._binding.bind_input(name, "cpu", 0, _BFLOAT16, shape, array.ctypes.data)
        else:
            self._binding.bind_cpu_input(name, array)
        return array

    def _bound_there(self, name: str, array: Any) -> Any:
        """Bind an input on the session's device and return its capsule; None if it cannot be bound there."""
        place = self._place
        if place is None or place.device != tuple(map(int, array.__dlpack_device__())):
            return None
        try:
            capsule = dlpack.exported(array)
        except BufferError:  # PyTorch raises it if another device is the current one of this thread
            return None
        found = dlpack.array_info(capsule)
        if not found.in_order:
            return None
        kind = _BFLOAT16 if found.dtype is dtypes.BF16 else found.dtype.numpy.type
        self._binding.bind_input(
            name, place.name, place.number, kind, list(found.shape), found.address
        )
        return capsule

    def _bind_output(self, name: str, rows: int, stays: bool) -> np.ndarray | None:
        """Bind an output to a new array and return the array.

        Returns None if ONNX Runtime allocates the memory: for an output that stays on the device, and for
        one whose shape is unknown before the run.
        """
        info = self._outputs[name]
        if stays and self._place is not None:
            self._binding.bind_output(name, self._place.name, self._place.number)
            return None
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
    """Return a copy of an OrtValue in host memory, because its own memory ends with the binding."""
    if value.element_type() != _BFLOAT16:
        return np.asarray(value.numpy())
    shape = tuple(value.shape())
    found = np.empty(shape, dtypes.BF16.numpy)
    if found.size:
        ctypes.memmove(found.ctypes.data, value.data_ptr(), found.nbytes)
    return found
