"""execute: tensors ─► a function of the session ─► arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_tensorflow.files import text_of, unreadable
from backend_tensorflow.tensors import Port
from core import dtypes
from core.backend import ModelInstance
from core.batch import Batch
from core.completion import tensors_of_the_server
from core.errors import CoreError, internal
from core.file_signature import outputs_without_dims
from core.ragged import batch_inputs, scattered

if TYPE_CHECKING:
    from backend_tensorflow.backend import TensorFlowModel
    from backend_tensorflow.session import Function, Session


class TensorFlowInstance(ModelInstance):
    """Runs batches on a session, which other instances of the device may use at the same time."""

    model: TensorFlowModel
    placement = "auto"  # every thread may run a session

    def open(self) -> None:
        model, config = self.model, self.model.config
        names = [io.name for io in config.input]
        names += sorted(tensors_of_the_server(config)[0] - set(names))
        self._inputs = [model.ports.inputs[name] for name in names]
        self._feeds = [port.tensor for port in self._inputs]
        names = [io.name for io in config.output]
        names += sorted({s.output_name for s in config.sequence_batching.state} - set(names))
        self._names = names
        self._batches = bool(config.max_batch_size)
        self._without_dims = outputs_without_dims(config)
        self._scattered = {name for each in config.batch_output for name in each.target_name}
        self._ragged = {io.name for io in config.input if io.allow_ragged_batch}
        self._session: Session | None = model.sessions.take(self.device)
        try:
            # TensorFlow optimizes the graph for it now, not at the first request.
            self._function(names)
        except Exception as error:
            self.close()
            raise unreadable(model.path, model.name, text_of(error)) from error

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        batch.inputs_ready()
        given = batch_inputs(self.model.config, batch) if self.model.config.batch_input else {}
        arrays = [
            given[port.name] if port.name in given else self._fed(batch[port.name], port)
            for port in self._inputs
        ]
        names = batch.wanted(self._names)
        try:
            results = self._function(names)(*arrays)
        except Exception as error:
            raise internal(f"model '{self.model.name}': {text_of(error)}") from error
        batch.outputs_ready()
        found = {
            name: self._sent(name, array, batch) for name, array in zip(names, results, strict=True)
        }
        if not self._scattered:
            return found
        for i, parts in enumerate(scattered(self.model.config, batch, found)):
            batch.respond(i, parts)
        return None

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            self.model.sessions.give_back(session)

    def _function(self, names: list[str]) -> Function:
        outputs = self.model.ports.outputs
        assert self._session is not None  # core does not execute after close
        return self._session.function(self._feeds, [outputs[name].tensor for name in names])

    def _fed(self, array: np.ndarray, port: Port) -> np.ndarray:
        """Return an array as the graph takes it: dims [1] of a configuration stand for no dims."""
        if array.ndim != len(port.dims) and not port.any_rank and port.name not in self._ragged:
            array = array.reshape(array.shape[: len(port.dims)])
        return array.view(_bfloat16()) if port.type == "bfloat16" else array

    def _sent(self, name: str, array: np.ndarray, batch: Batch) -> np.ndarray:
        """Return an array as core takes it."""
        array = np.asarray(array)
        if array.dtype.name == "bfloat16":
            array = array.view(dtypes.BF16.numpy)
        if name in self._scattered:
            return array
        if self._batches and (not array.ndim or len(array) != batch.rows):
            raise self._mixes_rows(name, array, batch)
        if array.ndim == self._batches and name not in self._without_dims:
            array = array.reshape((*array.shape, 1))
        return array

    def _mixes_rows(self, name: str, array: np.ndarray, batch: Batch) -> CoreError:
        return internal(
            f"model '{self.model.name}': output '{name}' has shape {list(array.shape)} for {batch.rows} "
            "rows: the model does not keep rows apart; set max_batch_size to 0"
        )


def _bfloat16() -> np.dtype[Any]:
    from backend_tensorflow.framework import tf

    found: np.dtype[Any] = np.dtype(tf.bfloat16.as_numpy_dtype)
    return found
