"""Predictor: batch inference with Ray Data, by the same models.

blocks of a dataset ─► ds.map_batches([Predictor]) ─► requests of at most max_batch_size rows ─► core.Server

Each process has one server for each set of options, which its first batch starts.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import core
from core import dtypes
from core.errors import invalid

Batch = dict[str, np.ndarray]

_MOST_REQUESTS = 64  # of one batch at a time


class Predictor:
    """A function of batches for `map_batches`: adds the outputs of a model as columns. Can be pickled.

    model     name of the model
    inputs    input → column; by default, each input is the column of its name
    outputs   output → column, or names of outputs; by default all. Other outputs are not computed
    keep      whether the result has the columns of the batch too; an output replaces a column of its name
    version   of the model, by default the newest
    options   of core.Server: model_repository="/models", and others
    Raises CoreError(INVALID) for a wrong option or mapping; a call raises the errors of the model.
    """

    def __init__(
        self,
        model: str,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | Sequence[str] | None = None,
        keep: bool = True,
        version: int | None = None,
        **options: Any,
    ):
        core.Server(**options)  # not started: a wrong option is an error here, not in a task
        self.model = model
        self.inputs = dict(inputs or {})
        self.outputs = _columns(outputs)
        self.keep = keep
        self.version = version
        self.options = options

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with the outputs of the model as columns, rows in their order."""
        server = _server_of(self.options)
        config = server.config(self.model, **self._version())
        columns = {
            each["name"]: _as_input(
                each,
                self._column_name(each),
                self._column(batch, each),
                bool(config["max_batch_size"]),
            )
            for each in config["input"]
            if not (each.get("optional") and self._column_name(each) not in batch)
        }
        found = asyncio.run(self._answers(server, columns, config["max_batch_size"]))
        added = {self.outputs.get(name, name): values for name, values in found.items()}
        return {**batch, **added} if self.keep else added

    def _column_name(self, description: Mapping[str, Any]) -> str:
        name: str = description["name"]
        return self.inputs.get(name, name)

    def _column(self, batch: Batch, description: Mapping[str, Any]) -> np.ndarray:
        name = self._column_name(description)
        if name not in batch:
            raise invalid(
                f"model '{self.model}' needs input '{description['name']}', and the dataset has no column "
                f"'{name}' (it has {', '.join(batch) or 'none'}): give inputs={{input: column}}"
            )
        return batch[name]

    def _version(self) -> dict[str, Any]:
        return {} if self.version is None else {"version": self.version}

    async def _answers(self, server: core.Server, columns: Batch, most_rows: int) -> Batch:
        """Return name → values of the outputs for all rows; the requests have at most `most_rows` rows.

        most_rows   0 for a model that does not batch: one request has all rows
        """
        rows = max((len(each) for each in columns.values()), default=0)
        step = most_rows or max(rows, 1)
        turn = asyncio.Semaphore(_MOST_REQUESTS)

        async def one(start: int) -> Mapping[str, np.ndarray]:
            part = {name: each[start : start + step] for name, each in columns.items()}
            async with turn:
                return await server.infer_async(
                    self.model, part, outputs=tuple(self.outputs), **self._version()
                )

        parts = await asyncio.gather(*(one(start) for start in range(0, max(rows, 1), step)))
        return {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}


def _columns(outputs: Mapping[str, str] | Sequence[str] | None) -> dict[str, str]:
    if outputs is None:
        return {}
    if isinstance(outputs, str):
        raise invalid(f"outputs={outputs!r} is one text: give a list, [{outputs!r}]")
    return dict(outputs) if isinstance(outputs, Mapping) else {name: name for name in outputs}


def _as_input(
    description: Mapping[str, Any], column: str, values: np.ndarray, batches: bool
) -> np.ndarray:
    """Return a column in datatype and shape of an input. Raises CoreError(INVALID) if it has others.

    Numbers are converted within their kind, such as float64 to FP32, if the datatype can hold them. One
    number for each row fits an input of shape [1].
    """
    name, dims = description["name"], [int(size) for size in description["dims"]]
    wanted = dtypes.BY_CONFIG_NAME[description["data_type"]]
    if values.dtype == object and len(values) and isinstance(values[0], np.ndarray):
        try:
            values = np.stack(list(values))
        except ValueError:
            raise invalid(f"input '{name}': the rows of its column have different shapes") from None
    if values.ndim == 1 and dims == [1] and batches:
        values = values.reshape(-1, 1)
    if wanted is dtypes.BYTES:
        return values.astype(object) if values.dtype.kind in "SU" else values
    if values.dtype != wanted.numpy:
        if not np.can_cast(values.dtype, wanted.numpy, "same_kind"):
            raise invalid(
                f"input '{name}' is {wanted.name}, and its column is {values.dtype}: convert the column"
            )
        return _converted(name, column, values, wanted)
    return values


def _converted(name: str, column: str, values: np.ndarray, wanted: dtypes.DataType) -> np.ndarray:
    """Return numbers in a datatype. Raises CoreError(INVALID) with the first one that is out of its range."""
    with np.errstate(over="ignore"):
        found = values.astype(wanted.numpy)
    if np.can_cast(values.dtype, wanted.numpy, "safe"):
        return found
    if found.dtype.kind in "iu":
        bounds = np.iinfo(found.dtype)
        outside = (values < bounds.min) | (values > bounds.max)
    else:
        outside = np.isinf(found) & ~np.isinf(values)
    if outside.any():
        raise invalid(
            f"input '{name}' is {wanted.name}, and its column '{column}' has {values[outside][0]}, which is "
            f"out of the range of {wanted.name}: give numbers that fit, or change the datatype of the input"
        )
    return found


_turn = threading.Lock()
_servers: dict[str, core.Server] = {}  # of this process


def _server_of(options: Mapping[str, Any]) -> core.Server:
    """Return the server of this process with these options; the first call starts it."""
    key = repr(sorted(options.items()))
    with _turn:
        if key not in _servers:
            _servers[key] = core.Server(**options).start()
        return _servers[key]
