"""Stage: what a model of this backend does with a batch; one class for each kind of image.json."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backend_image.headers import NoPicture
from core.batch import Batch
from core.dtypes import DataType
from core.errors import CoreError, invalid
from core.request import InferenceRequest

Outputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Tensor:
    """An input or output. dims: without the batch dimension; -1 for any size."""

    name: str
    dtype: DataType
    dims: tuple[int, ...]
    optional: bool = False


class Stage(ABC):
    """What a model does. Thread-safe: all instances use one.

    inputs, outputs   of the model
    is_short          whether no picture of a client makes an execution long; only then it may run on the loop
    The load sets what the configuration says:
    model             name of the model, for errors
    batched           whether tensors have a batch dimension
    configured        names of the outputs that the model has
    """

    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    is_short: bool = False
    model: str = ""
    batched: bool = True
    configured: frozenset[str] = frozenset()

    @abstractmethod
    def execute(self, batch: Batch) -> Outputs | None:
        """Return the outputs for all rows of a batch; None if each request is answered already."""

    def chosen(self, outputs: Outputs) -> Outputs:
        """Return the outputs that the configuration has."""
        return {name: array for name, array in outputs.items() if name in self.configured}

    def rows(self, request: InferenceRequest, name: str) -> np.ndarray:
        """Return an input of a request, with a first dimension of rows also for a model without batches."""
        array = request.inputs[name].array
        return array if self.batched else array[None]

    def refused(self, text: str) -> CoreError:
        return invalid(f"model '{self.model}': {text}")


class RequestStage(Stage):
    """A stage that answers each request of a batch on its own."""

    def execute(self, batch: Batch) -> Outputs | None:
        for i, request in enumerate(batch.requests):
            try:
                batch.respond(i, self.chosen(self.answer(request)))
            except NoPicture as error:
                batch.fail(i, self.refused(str(error)))
            except CoreError as error:
                batch.fail(i, error)
        return None

    @abstractmethod
    def answer(self, request: InferenceRequest) -> Outputs:
        """Return the outputs for one request. Raises CoreError, or NoPicture without the model's name."""

    def joined(self, rows: Sequence[Outputs]) -> Outputs:
        """Return the outputs of a request: those of its rows stacked, which must have equal shapes."""
        if not self.batched:
            return rows[0]
        if len(rows) == 1:
            return {name: array[None] for name, array in rows[0].items()}
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
