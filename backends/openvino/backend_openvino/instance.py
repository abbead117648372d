"""execute: tensors ─► infer ─► arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov

from backend_openvino.reading import ov_text
from backend_openvino.tensors import Port
from core import dtypes
from core.backend import ModelInstance
from core.batch import Batch
from core.config import ModelConfig
from core.errors import internal, invalid

if TYPE_CHECKING:
    from backend_openvino.backend import OpenVinoModel


class OpenVinoInstance(ModelInstance):
    """One infer request of the compiled model, which other instances share."""

    model: OpenVinoModel
    placement = "auto"  # an infer request does not mind which thread runs it

    def open(self) -> None:
        config = self.model.config
        if self.device.kind == "GPU":
            raise invalid(
                f"unable to load model '{self.model.name}', the OpenVINO backend supports only KIND_CPU "
                "and KIND_AUTO; the parameter 'TARGET_DEVICE' chooses the device"
            )
        compiled = self.model.compiled_for(self.host_policy.cores)
        self._request = compiled.create_infer_request()
        ports = self.model.ports
        self._inputs = [
            _Feed(name, port.index, compiled.inputs[port.index].get_element_type(), port.dims == ())
            for name, port in _given(config, ports.inputs)
        ]
        states = {state.output_name for state in config.sequence_batching.state}
        names = [io.name for io in config.output]
        names += [name for name in sorted(states) if name not in names]
        self._outputs = {name: ports.outputs[name].index for name in names}
        self._states = states
        self._scalars = {
            io.name: tuple(io.dims) for io in config.output if ports.outputs[io.name].dims == ()
        }

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        rows = batch.rows if self.model.config.max_batch_size else 0
        missing = self.model.rows - rows if self.model.rows else 0
        if missing and not self.model.settings.pads:
            raise internal(
                f"expected requests with batch size '{self.model.rows}', got '{rows}'... this error can "
                "be avoided by setting 'ENABLE_BATCH_PADDING' parameter in model configuration to "
                "'YES' at a performance cost."
            )
        batch.inputs_ready()
        try:
            tensors = [feed.tensor(batch[feed.name], missing) for feed in self._inputs]
            for feed, tensor in zip(self._inputs, tensors, strict=True):
                self._request.set_input_tensor(feed.index, tensor)
            self._request.infer()
        except Exception as error:
            raise internal(f"model '{self.model.name}': {ov_text(error)}") from error
        outputs = {name: self._output(name, missing) for name in self._wanted(batch)}
        batch.outputs_ready()
        return outputs

    def _wanted(self, batch: Batch) -> list[str]:
        """The outputs that some request of the batch wants, and its states; no others are copied."""
        wanted = set(self._states)
        for request in batch.requests:
            if not request.outputs:
                return list(self._outputs)
            wanted.update(output.name for output in request.outputs)
        return [name for name in self._outputs if name in wanted]

    def _output(self, name: str, missing: int) -> np.ndarray:
        """A copy of an output: the next run writes to the same memory."""
        tensor = self._request.get_output_tensor(self._outputs[name])
        array: np.ndarray
        if tensor.element_type == ov.Type.string:
            array = tensor.bytes_data.astype(object)
        elif tensor.element_type == ov.Type.bf16:
            array = tensor.data.view(dtypes.BF16.numpy).copy()
        else:
            array = tensor.data.copy()
        if missing:
            array = array[: len(array) - missing]
        return array.reshape(self._scalars[name]) if name in self._scalars else array

    def close(self) -> None:
        """Let go of the request; the compiled model goes with the last one."""
        self._request = None


class _Feed:
    """One input: arrays as OpenVINO takes them.

    Writable arrays in C order are used where they are, others are copied once.
    """

    def __init__(self, name: str, index: int, kind: Any, scalar: bool):
        self.name = name
        self.index = index
        self._type = kind
        self._scalar = scalar

    def tensor(self, array: np.ndarray, missing: int) -> Any:
        """An openvino.Tensor of the array and of as many rows of zeros as are missing."""
        if missing:
            array = _filled_up(array, missing)
        if self._type == ov.Type.string:
            return ov.Tensor(_texts(array.reshape(()) if self._scalar else array, self.name))
        array = np.ascontiguousarray(array)
        if self._scalar:
            array = array.reshape(())
        if not array.flags.writeable:
            array = array.copy()  # OpenVINO shares no memory that it might write to
        return ov.Tensor(array, list(array.shape), self._type)


def _filled_up(array: np.ndarray, missing: int) -> np.ndarray:
    whole = np.zeros((len(array) + missing, *array.shape[1:]), array.dtype)
    if array.dtype == object:
        whole[:] = b""
    whole[: len(array)] = array
    return whole


def _texts(array: np.ndarray, name: str) -> np.ndarray:
    """Elements of one width. numpy takes zeros off their end, so none may end in one."""
    if any(element.endswith(b"\0") for element in array.reshape(-1)):
        raise invalid(
            f"input '{name}': an element ends in a NUL byte, which OpenVINO's Python interface cannot "
            "pass on"
        )
    return array.astype("S")


def _given(config: ModelConfig, ports: Mapping[str, Port]) -> list[tuple[str, Port]]:
    """What a batch brings: inputs, controls, states."""
    sequence = config.sequence_batching
    names = [io.name for io in config.input]
    names += [control.name for control in sequence.control_input]
    names += [state.input_name for state in sequence.state]
    return [(name, ports[name]) for name in names]
