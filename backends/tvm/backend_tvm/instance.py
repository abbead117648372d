"""execute: tensors ─► virtual machine ─► arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_tvm.machine import Machine, text_of
from backend_tvm.tensors import Port
from core.backend import ModelInstance
from core.batch import Batch
from core.errors import CoreError, internal
from core.file_signature import outputs_without_dims

if TYPE_CHECKING:
    from backend_tvm.backend import TvmModel


class TvmInstance(ModelInstance):
    """One virtual machine. All instances use the same code in memory, those of a device the same weights."""

    model: TvmModel

    def open(self) -> None:
        model, config = self.model, self.model.config
        self._machine: Machine | None = model.machine_on(self.device)
        self._inputs = list(model.ports.inputs.values())
        self._outputs = list(model.ports.outputs)
        self._names = [io.name for io in config.output]
        states = {s.output_name for s in config.sequence_batching.state}
        self._names += sorted(states - set(self._names))
        self._without_dims = outputs_without_dims(config)
        self._batches = bool(config.max_batch_size)

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        arrays = [_shaped(batch[port.name], port) for port in self._inputs]
        batch.inputs_ready()
        machine = self._machine
        assert machine is not None  # core does not execute after close
        try:
            results = machine.run(arrays)
        except Exception as error:
            raise internal(f"model '{self.model.name}': {text_of(error)}") from error
        batch.outputs_ready()
        found = dict(zip(self._outputs, results, strict=True))
        return {name: self._output(name, found[name], batch) for name in batch.wanted(self._names)}

    def close(self) -> None:
        self._machine = None

    def _output(self, name: str, array: np.ndarray, batch: Batch) -> np.ndarray:
        if self._batches and (not array.ndim or len(array) != batch.rows):
            raise self._mixes_rows(name, array, batch)
        if array.ndim == self._batches and name not in self._without_dims:
            array = array.reshape((*array.shape, 1))
        return array

    def _mixes_rows(self, name: str, array: np.ndarray, batch: Batch) -> CoreError:
        return internal(
            f"model '{self.model.name}': output '{name}' has shape {list(array.shape)} for {batch.rows} "
            "rows: the function does not keep rows apart; set max_batch_size to 0"
        )


def _shaped(array: np.ndarray, port: Port) -> np.ndarray:
    """Return an array with the rank of its port. Elsewhere, dims [1] stand for no dims."""
    rank = len(port.dims)
    return array if array.ndim == rank else array.reshape(array.shape[:rank])
