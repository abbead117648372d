"""execute: tensors ─► runs ─► arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_litert.runs import Runs, shaped, text_of
from backend_litert.tensors import Port
from core.backend import ModelInstance
from core.batch import Batch
from core.completion import tensors_of_the_server
from core.errors import CoreError, internal, invalid
from core.file_signature import outputs_without_dims
from core.system.platform import cores

if TYPE_CHECKING:
    from backend_litert.backend import LiteRtModel

_MOST_THREADS = 4  # of an instance that the configuration gives no number


class LiteRtInstance(ModelInstance):
    """One interpreter. All instances use the weights of one file in memory."""

    model: LiteRtModel
    placement = "auto"  # every thread may run an interpreter

    def open(self) -> None:
        model, config = self.model, self.model.config
        if self.device.kind == "GPU":
            raise invalid(
                f"unable to load model '{model.name}', the LiteRT backend supports only KIND_CPU; a "
                "parameter 'delegate' names a library for another device"
            )
        if model.settings.delegate:
            self.placement = "thread"  # a library may keep state of the thread that has loaded it
        threads = model.settings.threads or min(_MOST_THREADS, self._cores())
        self._runs: Runs | None = Runs(
            model.content, model.file_path, model.name, model.ports, model.settings, threads
        )
        names = [io.name for io in config.input]
        names += sorted(tensors_of_the_server(config)[0] - set(names))
        self._inputs = [model.ports.inputs[name] for name in names]
        names = [io.name for io in config.output]
        names += sorted({s.output_name for s in config.sequence_batching.state} - set(names))
        self._names = names
        self._without_dims = outputs_without_dims(config)
        # A file with one row runs once for each row: its operators may be made for that size.
        self._each = bool(config.max_batch_size) and model.ports.has_one_row
        self._each = self._each and not model.settings.resize_rows
        self._floats = model.settings.float_tensors
        self._batches = bool(config.max_batch_size)

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        inputs = {port.name: self._input(batch, port) for port in self._inputs}
        names = batch.wanted(self._names)
        batch.inputs_ready()
        runs = self._runs
        assert runs is not None  # core does not execute after close
        try:
            outputs = self._run(runs, inputs, names, batch.rows)
        except Exception as error:
            raise internal(f"model '{self.model.name}': {text_of(error)}") from error
        batch.outputs_ready()
        return {name: self._output(name, array, batch) for name, array in outputs.items()}

    def close(self) -> None:
        self._runs = None

    def _run(
        self, runs: Runs, inputs: Mapping[str, np.ndarray], names: Sequence[str], rows: int
    ) -> dict[str, np.ndarray]:
        if not self._each:
            return runs.run(inputs, names)
        found = [
            runs.run({name: array[row : row + 1] for name, array in inputs.items()}, names)
            for row in range(rows)
        ]
        return {name: np.concatenate([each[name] for each in found]) for name in names}

    def _input(self, batch: Batch, port: Port) -> np.ndarray:
        array = shaped(batch[port.name], port)
        if self._floats and port.is_quantised:
            return _quantised(array, port)
        return array

    def _output(self, name: str, array: np.ndarray, batch: Batch) -> np.ndarray:
        port = self.model.ports.outputs[name]
        if self._floats and port.is_quantised:
            scale, point = port.scale or (1.0, 0)
            array = (array.astype(np.float32) - point) * np.float32(scale)
        if self._batches and (not array.ndim or len(array) != batch.rows):
            raise self._mixes_rows(name, array, batch)
        if array.ndim == self._batches and name not in self._without_dims:
            array = array.reshape((*array.shape, 1))
        return array

    def _mixes_rows(self, name: str, array: np.ndarray, batch: Batch) -> CoreError:
        return internal(
            f"model '{self.model.name}': output '{name}' has shape {list(array.shape)} for {batch.rows} "
            "rows: the operators of the file do not keep rows apart; set max_batch_size to 0, or remove the "
            "parameter 'resize_rows'"
        )

    def _cores(self) -> int:
        return len(self.host_policy.cores or cores())


def _quantised(array: np.ndarray, port: Port) -> np.ndarray:
    """Return the nearest whole numbers for real ones, within the bounds of the datatype."""
    scale, point = port.scale or (1.0, 0)
    bounds = np.iinfo(port.type)
    found = np.rint(array / np.float32(scale)) + point
    whole: np.ndarray = np.clip(found, bounds.min, bounds.max).astype(port.type)
    return whole
