"""execute: tensors ─► infer ─► arrays."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov

from backend_openvino.feeding import Feed
from backend_openvino.reading import ov_text
from backend_openvino.tensors import Port
from backend_openvino.text import elements_of
from core import dtypes, termination
from core.backend import ModelInstance
from core.batch import Batch
from core.config import ModelConfig
from core.errors import CoreError, internal, invalid

if TYPE_CHECKING:
    from backend_openvino.backend import OpenVinoModel


_AGAIN_S = 0.02  # time between two calls of cancel


class Termination(termination.Termination):
    """Cancel the runs of one infer request. OpenVINO ends a run between two operations."""

    def __init__(self, request: Any, loop: asyncio.AbstractEventLoop):
        super().__init__()
        self._request = request
        self._loop = loop

    def now(self, batch: Batch) -> bool:
        runs = super().now(batch)
        if runs:  # OpenVINO loses a cancel that comes shortly before the run begins
            self._loop.call_later(_AGAIN_S, self.now, batch)
        return runs

    def stop(self) -> None:
        self._request.cancel()


class OpenVinoInstance(ModelInstance):
    """One infer request of the compiled model, which all instances share."""

    model: OpenVinoModel
    placement = "auto"  # every thread may run an infer request

    def open(self) -> None:
        config = self.model.config
        if self.device.kind == "GPU":
            raise invalid(
                f"unable to load model '{self.model.name}', the OpenVINO backend supports only KIND_CPU "
                "and KIND_AUTO; the parameter 'TARGET_DEVICE' chooses the device"
            )
        compiled = self.model.compiled_for(self.host_policy.cores)
        self._request = compiled.create_infer_request()
        self._termination = Termination(self._request, self.loop)
        # Without a reset, variables in the model would carry values of one client into another's answer.
        self._remembers = bool(self._request.query_state())
        ports = self.model.ports
        self._inputs = [
            Feed(
                self._request,
                name,
                port.index,
                compiled.inputs[port.index].get_element_type(),
                port.dims == (),
            )
            for name, port in _given(config, ports.inputs)
        ]
        names = [io.name for io in config.output]
        names += sorted({s.output_name for s in config.sequence_batching.state} - set(names))
        self._outputs = {name: ports.outputs[name].index for name in names}
        self._names = names
        self._scalars = {
            io.name: tuple(io.dims) for io in config.output if ports.outputs[io.name].dims == ()
        }
        self._batches = bool(config.max_batch_size)
        self._rows = self.model.rows
        kinds = [each.get_element_type() for each in compiled.outputs]
        self._has_text = ov.Type.string in kinds
        converts = self._has_text or ov.Type.bf16 in kinds
        self._as_they_are = not (self._rows or self._scalars or converts)

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        missing = self._missing(batch) if self._rows else 0
        batch.inputs_ready()
        self._termination.begin(batch)
        try:
            if self._remembers:
                self._request.reset_state()
            for feed in self._inputs:
                feed.give(batch, missing)
            # Text cannot be shared: OpenVINO would print a warning at every run.
            found = self._request.infer(share_outputs=not self._has_text, decode_strings=False)
        except Exception as error:
            raise (self._termination.end() or self._failed(error)) from error
        self._termination.end()
        names = batch.wanted(self._names)
        if self._as_they_are:
            outputs = self._copies(found, names)
        else:
            outputs = {name: self._output(name, missing) for name in names}
        batch.outputs_ready()
        return outputs

    def cancelled(self, batch: Batch) -> None:
        if self.model.can_break_off:
            self._termination.now(batch)

    def _failed(self, error: Exception) -> CoreError:
        if isinstance(error, CoreError):
            return error
        return internal(f"model '{self.model.name}': {ov_text(error)}")

    def _missing(self, batch: Batch) -> int:
        """Return the number of rows of padding for a model with a fixed number of rows.

        Raises CoreError(INTERNAL) if rows are missing and the settings do not allow padding.
        """
        rows = batch.rows if self._batches else 0
        missing = self._rows - rows
        if missing and not self.model.settings.pads:
            raise internal(
                f"expected requests with batch size '{self._rows}', got '{rows}'... this error can "
                "be avoided by setting 'ENABLE_BATCH_PADDING' parameter in model configuration to "
                "'YES' at a performance cost."
            )
        return missing

    def _copies(self, found: Any, names: list[str]) -> dict[str, np.ndarray]:
        """Return copies of outputs that need no conversion, because the next run writes to their memory."""
        views = found.to_tuple()
        outputs = {}
        for name in names:
            outputs[name] = views[self._outputs[name]].copy()
        return outputs

    def _output(self, name: str, missing: int) -> np.ndarray:
        """Return a copy of an output of any datatype, without rows of padding."""
        tensor = self._request.get_output_tensor(self._outputs[name])
        array: np.ndarray
        if tensor.element_type == ov.Type.string:
            array = elements_of(tensor)
        elif tensor.element_type == ov.Type.bf16:
            array = tensor.data.view(dtypes.BF16.numpy).copy()
        else:
            array = tensor.data.copy()
        if missing:
            array = array[: len(array) - missing]
        return array.reshape(self._scalars[name]) if name in self._scalars else array

    def close(self) -> None:
        """Release the infer request. The model keeps the compiled model until it unloads."""
        self._request = None
        self._inputs = []


def _given(config: ModelConfig, ports: Mapping[str, Port]) -> list[tuple[str, Port]]:
    """Return (name, port) of each input that a batch has: inputs, controls, states."""
    sequence = config.sequence_batching
    names = [io.name for io in config.input]
    names += [control.name for control in sequence.control_input]
    names += [state.input_name for state in sequence.state]
    return [(name, ports[name]) for name in names]
