"""Spec: datatype and shape of one input or output in a call of Server.bind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, NamedTuple

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.errors import invalid


class Spec(NamedTuple):
    """Datatype and shape of one input or output.

    dtype      "FP32", np.float32, bytes or str for text, or a core.dtypes.DataType
    shape      of one row if the model batches, else of the whole tensor; a dimension of -1 may have any size
    optional   whether requests may omit this input; then the function is called without it
    """

    dtype: Any
    shape: tuple[int, ...]
    optional: bool = False


Specs = Mapping[str, Any] | Iterable[Any]
"""name → Spec or (dtype, shape), or objects with name, dtype and shape, such as PyTriton's Tensor."""


def specs_of(what: str, given: Specs) -> dict[str, Spec]:
    """Return specs by name, each with a DataType and a tuple of int.

    what   "input" or "output", for error texts
    Raises CoreError(INVALID) for a missing or invalid datatype or shape.
    """
    if isinstance(given, Mapping):
        return {name: _spec(f"{what} '{name}'", value) for name, value in given.items()}
    found: dict[str, Spec] = {}
    for number, each in enumerate(given, 1):
        if not all(hasattr(each, part) for part in ("name", "dtype", "shape")):
            raise invalid(
                f"{what}s are given as a {type(given).__name__} that holds {each!r}: give a dict such as "
                '{"x": ("FP32", [16])}, or objects with name, dtype and shape'
            )
        name = each.name or f"{what.upper()}_{number}"  # as PyTriton names them
        optional = bool(getattr(each, "optional", False))
        found[name] = _spec(f"{what} '{name}'", (each.dtype, each.shape, optional))
    return found


def _spec(what: str, value: Any) -> Spec:
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        raise invalid(f'{what} is {value!r}: give datatype and shape, such as ("FP32", [16])')
    dtype, shape, *rest = value
    try:
        dims = tuple(index(size) for size in shape)
    except TypeError:
        raise invalid(
            f"{what} has the shape {shape!r}: give a list of int, -1 for any size"
        ) from None
    return Spec(_dtype(what, dtype), dims, bool(rest and rest[0]))


def _dtype(what: str, given: Any) -> DataType:
    if isinstance(given, DataType):
        return given
    if isinstance(given, str):
        found = dtypes.BY_NAME.get(given) or dtypes.BY_CONFIG_NAME.get(given)
        if found is not None:
            return found
    elif given in (bytes, str, object):
        return dtypes.BYTES
    try:
        found = dtypes.of_numpy(np.dtype(given))
    except TypeError:
        found = None
    if found is None:
        raise invalid(
            f"{what} has the datatype {given!r}: give one of {', '.join(dtypes.BY_NAME)}, or a numpy "
            "dtype"
        )
    return found


def spec_of_array(array: np.ndarray, batches: bool) -> Spec:
    """Return the spec of an example array. If `batches` is true, its shape omits the first dimension."""
    dtype = dtypes.of_numpy(array.dtype)
    assert dtype is not None  # the array comes from a Tensor
    return Spec(dtype, array.shape[1:] if batches else array.shape)
