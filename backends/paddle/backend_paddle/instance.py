"""execute: tensors ─► predictor ─► arrays."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_paddle.tensors import Port
from core.backend import ModelInstance
from core.batch import Batch
from core.completion import tensors_of_the_server
from core.errors import CoreError, internal
from core.file_signature import outputs_without_dims
from core.system.platform import cores

if TYPE_CHECKING:
    from backend_paddle.backend import PaddleModel
    from backend_paddle.predictor import Predictor

logger = logging.getLogger("core")

_MOST_THREADS = 4  # of an instance that the configuration gives no number
_LONG_S = 0.02  # a run for which the server had better not stand still
_LONG_RUNS = 10  # after which the log says so: the first ones of a model are longer than others


class PaddleInstance(ModelInstance):
    """One predictor. All instances of a device use the same weights in memory."""

    model: PaddleModel

    def open(self) -> None:
        model, config = self.model, self.model.config
        threads = model.settings.threads or min(_MOST_THREADS, self._cores())
        self._predictor: Predictor | None = model.predictors.predictor(self.device, threads)
        names = [io.name for io in config.input]
        names += sorted(tensors_of_the_server(config)[0] - set(names))
        self._inputs = [model.ports.inputs[name] for name in names]
        names = [io.name for io in config.output]
        names += sorted({s.output_name for s in config.sequence_batching.state} - set(names))
        self._names = names
        self._without_dims = outputs_without_dims(config)
        self._batches = bool(config.max_batch_size)
        self._long_runs = 0

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        from backend_paddle.predictor import text_of

        arrays = {port.name: _shaped(batch[port.name], port) for port in self._inputs}
        names = batch.wanted(self._names)
        batch.inputs_ready()
        predictor = self._predictor
        assert predictor is not None  # core does not execute after close
        began = time.perf_counter()
        try:
            found = predictor.run(arrays, names)
        except Exception as error:
            raise internal(f"model '{self.model.name}': {text_of(error)}") from error
        batch.outputs_ready()
        if (took := time.perf_counter() - began) > _LONG_S:
            self._note_long_run(took)
        return {name: self._output(name, array, batch) for name, array in found.items()}

    def close(self) -> None:
        self._predictor = None

    def _output(self, name: str, array: np.ndarray, batch: Batch) -> np.ndarray:
        if self._batches and (not array.ndim or len(array) != batch.rows):
            raise self._mixes_rows(name, array, batch)
        if array.ndim == self._batches and name not in self._without_dims:
            array = array.reshape((*array.shape, 1))
        return array

    def _note_long_run(self, seconds: float) -> None:
        """Say once that the server stands still during the runs of this instance, if it is in its process."""
        self._long_runs += 1
        if self._long_runs == _LONG_RUNS and self.model.server is not None:
            logger.warning(
                "model '%s': a run takes %.0f ms, in which Paddle holds the lock of Python's interpreter, "
                "and the server does nothing else; give it a process of its own with the parameter "
                "EXECUTION_MODE 'process' in config.pbtxt",
                self.model.name,
                1000 * seconds,
            )

    def _mixes_rows(self, name: str, array: np.ndarray, batch: Batch) -> CoreError:
        return internal(
            f"model '{self.model.name}': output '{name}' has shape {list(array.shape)} for {batch.rows} "
            "rows: the program does not keep rows apart; set max_batch_size to 0"
        )

    def _cores(self) -> int:
        return len(self.host_policy.cores or cores())


def _shaped(array: np.ndarray, port: Port) -> np.ndarray:
    """Return an array with the rank of its port. Elsewhere, dims [1] stand for no dims."""
    rank = len(port.dims)
    return array if array.ndim == rank else array.reshape(array.shape[:rank])
