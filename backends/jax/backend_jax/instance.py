"""execute: tensors ─► compiled function ─► arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy
import numpy as np

from backend_jax.functions import filled_up, powers_of_two, size_for
from backend_jax.reading import text_of
from backend_jax.tensors import Port
from core import dtypes
from core.backend import ModelInstance
from core.batch import Batch
from core.errors import internal
from core.file_signature import outputs_without_dims

if TYPE_CHECKING:
    from backend_jax.backend import JaxModel


class JaxInstance(ModelInstance):
    """Runs the compiled functions of the model on one device; all instances of a device share them."""

    model: JaxModel
    placement = "auto"  # every thread may run a function

    def open(self) -> None:
        model, config = self.model, self.model.config
        self._functions = model.functions_on(self.device)
        self._inputs = list(model.ports.inputs.values())
        self._outputs = list(model.ports.outputs)
        self._names = [io.name for io in config.output]
        states = {s.output_name for s in config.sequence_batching.state}
        self._names += sorted(states - set(self._names))
        self._without_dims = outputs_without_dims(config)
        self._sizes: tuple[int, ...] = ()
        if config.max_batch_size:
            self._sizes = model.settings.sizes or powers_of_two(config.max_batch_size)
        if not self._compile() or self.device.kind == "GPU":
            self.placement = (
                "thread"  # a request that compiles, or a busy GPU, would block the loop
            )

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        arrays = [_fed(batch[port.name], port) for port in self._inputs]
        batches = bool(self._sizes)
        if batches and batch.rows:
            rows = size_for(batch.rows, self._sizes)
            arrays = [filled_up(array, rows) for array in arrays]
        batch.inputs_ready()
        try:
            results = self._functions.run(arrays)
        except Exception as error:
            raise internal(f"model '{self.model.name}': {text_of(error)}") from error
        batch.outputs_ready()
        found = dict(zip(self._outputs, results, strict=True))
        return {
            name: self._sent(name, found[name][: batch.rows] if batches else found[name])
            for name in batch.wanted(self._names)
        }

    def _sent(self, name: str, array: np.ndarray) -> np.ndarray:
        """Return an array as core takes it."""
        if self.model.ports.outputs[name].type == "bfloat16":
            array = array.view(dtypes.BF16.numpy)
        if array.ndim == bool(self._sizes) and name not in self._without_dims:
            array = array.reshape((*array.shape, 1))
        return array

    def _compile(self) -> bool:
        """Compile for all sizes of batches. Return whether no request will have to.

        Requests compile if something else in the shapes is variable, or if fewer functions are kept.
        """
        shapes = [port.dims for port in self._inputs]
        all_shapes = [tuple(shapes)]
        if self._sizes:
            all_shapes = [tuple((rows, *dims[1:]) for dims in shapes) for rows in self._sizes]
        for each in all_shapes:
            if any(-1 in dims for dims in each):
                return False
            try:
                self._functions.compile(each)
            except Exception as error:
                raise internal(
                    f"model '{self.model.name}': JAX cannot compile the function for the shapes "
                    f"{', '.join(str(list(dims)) for dims in each)}: {text_of(error)}"
                ) from error
        return len(all_shapes) <= self.model.settings.shapes


def _fed(array: np.ndarray, port: Port) -> np.ndarray:
    """Return an array as the function takes it: dims [1] of a configuration stand for no dims."""
    rank = len(port.dims)
    if array.ndim != rank:
        array = array.reshape(array.shape[:rank])
    return array.view(_bfloat16()) if port.type == "bfloat16" else array


def _bfloat16() -> np.dtype[Any]:
    found: np.dtype[Any] = np.dtype(jax.numpy.bfloat16)
    return found
