"""Stage: what a model of this backend does with a batch; one class for each kind of image.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from backend_image.headers import NoPicture
from backend_image.options import Options
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


class Stage:
    """What a model does. Thread-safe: all instances use one.

    inputs, outputs   of the model
    The load sets what the configuration says:
    model             name of the model, for errors
    batched           whether tensors have a batch dimension
    configured        names of the outputs that the model has
    """

    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    model: str = ""
    batched: bool = True
    configured: frozenset[str] = frozenset()

    def execute(self, batch: Batch) -> Outputs | None:
        """Answer a batch: all requests at once, or each one by `answer`."""
        for i, request in enumerate(batch.requests):
            try:
                batch.respond(i, self.chosen(self.answer(request)))
            except NoPicture as error:
                batch.fail(i, self.refused(str(error)))
            except CoreError as error:
                batch.fail(i, error)
        return None

    def answer(self, request: InferenceRequest) -> Outputs:
        """Return the outputs for one request."""
        raise NotImplementedError

    def chosen(self, outputs: Outputs) -> Outputs:
        """Return the outputs that the configuration has."""
        return {name: array for name, array in outputs.items() if name in self.configured}

    def rows(self, request: InferenceRequest, name: str) -> np.ndarray:
        """Return an input of a request, with a first dimension of rows also for a model without batches."""
        array = request.inputs[name].array
        return array if self.batched else array[None]

    def joined(self, rows: Sequence[Outputs]) -> Outputs:
        """Return the outputs of a request: those of its rows stacked, which must have equal shapes."""
        if not self.batched:
            return rows[0]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def refused(self, text: str) -> CoreError:
        return invalid(f"model '{self.model}': {text}")


def read_labels(folder: Path, options: Options) -> list[bytes] | None:
    """Return the lines of the file that the option `labels` names, in the version folder or beside it.

    None without the option. Raises CoreError(INVALID) if the file cannot be read.
    """
    name = options.text("labels")
    if not name:
        return None
    if Path(name).name != name:
        raise options.wrong(
            "labels", "the name of a file in the folder of the version or of the model"
        )
    for place in (folder / name, folder.parent / name):
        try:
            return [line.strip() for line in place.read_bytes().splitlines()]
        except FileNotFoundError:
            continue
        except OSError as error:
            raise invalid(f"'{place}' cannot be read: {error}") from error
    raise options.wrong("labels", f"the name of a file in '{folder}' or '{folder.parent}'")


def labels_of(classes: np.ndarray, labels: Sequence[bytes]) -> np.ndarray:
    """Return the label of each class as an array of bytes; the number of a class without a label."""
    found: Any = np.empty(classes.shape, object)
    found.ravel()[:] = [
        labels[number] if 0 <= number < len(labels) else str(number).encode()
        for number in classes.ravel().tolist()
    ]
    return np.asarray(found)
