"""execute: requests ─► samples ─► pipeline ─► a response for each request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_dali.reading import WITHOUT_DIMS
from backend_dali.runner import Array, Runner, Samples, text_of
from backend_dali.tensors import Port
from core.backend import ModelInstance
from core.batch import Batch
from core.errors import CoreError, internal, invalid

if TYPE_CHECKING:
    from backend_dali.backend import DaliModel


class DaliInstance(ModelInstance):
    """One pipeline with threads of its own."""

    model: DaliModel

    def open(self) -> None:
        model, config = self.model, self.model.config
        model.check_device(self.device)
        self._runner = Runner(
            model.read,
            model.name,
            rows=config.max_batch_size,
            threads=model.settings.threads,
            device=self.device.id if self.device.kind == "GPU" else None,
        )
        self._inputs = list(model.read.ports.inputs.values())
        self._outputs = list(model.read.ports.outputs)
        self._ragged = any(io.allow_ragged_batch for io in config.input)

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        requests = self._requests(batch) if self._ragged else []
        given = {port.name: _given(batch, port, requests) for port in self._inputs}
        batch.inputs_ready()
        try:
            results = self._runner.run(given)
        except Exception as error:
            if len(batch.requests) == 1:
                raise self._failed(error) from error
            self._run_apart(batch, requests or self._requests(batch))
            return None
        batch.outputs_ready()
        if self._splits_by_rows(results):
            found = dict(zip(self._outputs, results, strict=True))
            return {name: _sent(found[name]) for name in batch.wanted(self._outputs)}
        self._respond(batch, results)
        return None

    def close(self) -> None:
        self._runner.close()

    def _requests(self, batch: Batch) -> list[dict[str, Array]]:
        """Return the inputs of each request, with their own shapes."""
        return [
            {port.name: _samples(inputs[port.name], port) for port in self._inputs}
            for inputs in ({name: array for name, _, array in each} for each in batch.arrays())
        ]

    def _splits_by_rows(self, results: Sequence[Samples]) -> bool:
        """Return whether core may split the outputs: arrays whose rows stay rows."""
        return not self.model.settings.split and not any(isinstance(each, list) for each in results)

    def _run_apart(self, batch: Batch, requests: Sequence[Mapping[str, Array]]) -> None:
        """Run each request of a failed batch by itself: only those that are at fault fail."""
        for i, given in enumerate(requests):
            try:
                results = self._runner.run(given)
                outputs = self._outputs_of(results, 0, batch.requests[i].rows)
            except CoreError as error:
                batch.fail(i, error, failure=True)
            except Exception as error:
                batch.fail(i, self._failed(error), failure=True)
            else:
                batch.respond(i, outputs)

    def _respond(self, batch: Batch, results: Sequence[Samples]) -> None:
        start = 0
        for i, request in enumerate(batch.requests):
            try:
                outputs = self._outputs_of(results, start, request.rows)
            except CoreError as error:
                batch.fail(i, error, failure=True)
            else:
                batch.respond(i, outputs)
            start += request.rows

    def _outputs_of(self, results: Sequence[Samples], start: int, rows: int) -> dict[str, Array]:
        """Return the outputs of one request, whose samples begin at `start`."""
        return {
            name: self._joined(name, each[start : start + rows])
            for name, each in zip(self._outputs, results, strict=True)
        }

    def _joined(self, name: str, samples: Samples) -> Array:
        """Return the samples of one request as one array. Raises CoreError if their shapes differ."""
        split = name in self.model.settings.split
        if split and not samples[0].ndim:
            raise invalid(f"model '{self.model.name}': {WITHOUT_DIMS.format(name=name)}")
        shapes = {each.shape[split:] for each in samples}
        if len(shapes) > 1:
            found = ", ".join(str(list(each)) for each in sorted(shapes))
            raise invalid(
                f"model '{self.model.name}': the rows of output '{name}' have different shapes ({found}); "
                "send them in requests of their own, or let the pipeline resize or pad them"
            )
        if split:
            return _sent(np.concatenate(samples))
        return _sent(samples if isinstance(samples, np.ndarray) else np.stack(samples))

    def _failed(self, error: BaseException) -> CoreError:
        return internal(f"model '{self.model.name}': {text_of(error)}")


def _given(batch: Batch, port: Port, requests: Sequence[Mapping[str, Array]]) -> Samples:
    """Return the samples of an input: one array, or a list if requests with their own shapes are given."""
    if requests:
        return [row for each in requests for row in each[port.name]]
    return _samples(batch[port.name], port)


def _samples(array: Array, port: Port) -> Array:
    """Return an array with the rank of its port. Elsewhere, dims [1] stand for no dims."""
    return array.reshape(len(array)) if port.ndim == 0 else array


def _sent(array: Samples) -> Array:
    """Return an array as core takes it: a sample without dims is one element."""
    array = np.asarray(array)
    return array.reshape((-1, 1)) if array.ndim == 1 else array
