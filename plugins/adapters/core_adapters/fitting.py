"""Convert arrays of a library to the shape and datatype of the configuration."""

from __future__ import annotations

from typing import Any

import numpy as np
from backend_python.api.datatypes import triton_string_to_numpy
from backend_python.api.errors import TritonModelException

Array = Any  # numpy.ndarray


def fit(values: Any, name: str, data_type: str, rank: int) -> Array:
    """Return `values` as the array of output `name`.

    data_type   such as "TYPE_INT64"
    rank        number of dimensions, with the batch dimension. Dimensions of size 1 are added at the end, or
                removed at the end and then at the front
    Raises TritonModelException if the shape cannot be converted, or if the datatype would lose information.
    """
    array = as_array(values)
    while array.ndim > rank and array.shape[-1] == 1:
        array = array.reshape(array.shape[:-1])
    while array.ndim > rank and array.shape[0] == 1:
        array = array.reshape(array.shape[1:])
    while array.ndim < rank:
        array = array[..., np.newaxis]
    if array.ndim != rank:
        raise TritonModelException(
            f"output '{name}': the model gives shape {list(array.shape)}, the configuration promises "
            f"{rank} dimensions"
        )
    return _cast(array, name, data_type)


def as_array(values: Any) -> Array:
    """Return a result as an array, also a sparse matrix or a data frame."""
    if hasattr(values, "toarray"):
        values = values.toarray()
    return np.asarray(values)


def data_type_of(array: Array) -> str:
    """Return the datatype of config.pbtxt for an array; TYPE_STRING unless it has numbers or booleans."""
    if array.dtype.kind in "OUS":
        return "TYPE_STRING"
    if array.dtype.kind == "b":
        return "TYPE_BOOL"
    prefix = {"i": "INT", "u": "UINT", "f": "FP"}.get(array.dtype.kind)
    return f"TYPE_{prefix}{8 * array.dtype.itemsize}" if prefix else "TYPE_STRING"


def _cast(array: Array, name: str, data_type: str) -> Array:
    if data_type == "TYPE_STRING":
        values = array.ravel().tolist()
        flat = [each if isinstance(each, bytes) else str(each).encode() for each in values]
        return np.array(flat, np.object_).reshape(array.shape)
    wanted = np.dtype(triton_string_to_numpy(data_type))
    if array.dtype == np.object_ and array.size and not isinstance(array.flat[0], (str, bytes)):
        array = np.array(array.tolist())  # an array of objects that are numbers
    if not np.can_cast(array.dtype, wanted, "same_kind") and array.size:
        raise TritonModelException(
            f"output '{name}': the model gives {array.dtype}, which does not fit into the {data_type} "
            f"of the configuration; {data_type_of(array)} would"
        )
    return array.astype(wanted, copy=False)
