"""Convert tensors of requests to the array or data frame for a library."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from backend_python.api.errors import TritonModelException

from core_adapters.fitting import Array
from core_adapters.needed import needed

Inputs = dict[str, Any]  # name → array, rows first


def inputs_of(request: Any) -> Inputs:
    """Return the arrays of a request, by name; texts are `str`."""
    return {tensor.name(): readable(tensor.as_numpy()) for tensor in request.inputs()}


def as_rows(inputs: Inputs) -> Inputs:
    """Return the inputs. A single input of numbers with fewer than 2 dimensions becomes one row."""
    if len(inputs) != 1:
        return inputs
    ((name, array),) = inputs.items()
    return {name: array.reshape(1, -1) if array.ndim < 2 and array.dtype != object else array}


def readable(array: Array) -> Array:
    """Return a BYTES array with `str` elements; one with invalid UTF-8, and any other array, unchanged."""
    if array.dtype != np.object_:
        return array
    try:
        texts = [each.decode() if isinstance(each, bytes) else each for each in array.ravel()]
    except UnicodeDecodeError:
        return array
    return np.array(texts, np.object_).reshape(array.shape)


def join(parts: list[Inputs]) -> Inputs:
    """Return name → rows of all requests, in their order; the requests have the same inputs."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def row_count(inputs: Inputs) -> int:
    """Return the number of rows, 0 without inputs; an array without dimensions is one row.

    Raises TritonModelException if the inputs have different numbers of rows.
    """
    counts = {name: array.shape[0] if array.ndim else 1 for name, array in inputs.items()}
    if len(set(counts.values())) > 1:
        sizes = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
        raise TritonModelException(f"the inputs have different numbers of rows: {sizes}")
    return next(iter(counts.values()), 0)


def split(
    whole: dict[str, Array], counts: list[int], asked: list[set[str]]
) -> list[dict[str, Array]]:
    """Return for each request its rows of the outputs that it requested."""
    found, first = [], 0
    for count, wanted in zip(counts, asked):
        rows = slice(first, first + count)
        found.append({name: array[rows] for name, array in whole.items() if name in wanted})
        first += count
    return found


def columns(inputs: Inputs) -> Inputs:
    """Return each input as one column of a table. Raises TritonModelException for a wider input."""
    found = {}
    for name, array in inputs.items():
        if array.size != (array.shape[0] if array.ndim else 1):
            raise TritonModelException(
                f"input '{name}' has shape {list(array.shape)}; of several inputs each is one column, "
                "[rows] or [rows, 1]"
            )
        found[name] = array.reshape(-1)
    return found


def table(inputs: Inputs, names: list[str]) -> Any:
    """Return the inputs for an estimator: one input as it is, several as [rows, features] or a data frame.

    One input of the right width becomes a data frame if `names` is not empty and pandas is installed. Several
    inputs become a data frame if `names` is not empty or a column is not of numbers.

    names   names of the features at training, in order; empty if they had none
    """
    if len(inputs) == 1:
        array = next(iter(inputs.values()))
        if not names or array.ndim != 2 or array.shape[1] != len(names) or not has_pandas():
            return array
        return _pandas().DataFrame(array, columns=names)
    found = columns(inputs)
    if names and set(names) <= set(found):
        found = {name: found[name] for name in names}
    if not names and all(column.dtype.kind in "biuf" for column in found.values()):
        return np.column_stack(list(found.values()))
    return _pandas().DataFrame(found)


@lru_cache(None)
def has_pandas() -> bool:
    return find_spec("pandas") is not None


def _pandas() -> Any:
    return needed("pandas", "pandas", "a table with named columns")
