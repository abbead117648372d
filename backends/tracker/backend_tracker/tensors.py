"""The tensors of a model: which inputs and outputs it has, and whether a configuration fits."""

from __future__ import annotations

from typing import Any

from core import dtypes
from core.config import ModelConfig
from core.dtypes import DataType
from core.errors import invalid

BOXES, SCORES, CLASSES = "boxes", "scores", "classes"
IDS, STATES = "ids", "states"

Dims = tuple[int, ...]

INPUTS: dict[str, tuple[DataType, Dims]] = {
    BOXES: (dtypes.FP32, (-1, 4)),
    SCORES: (dtypes.FP32, (-1,)),
    CLASSES: (dtypes.INT32, (-1,)),
}
OPTIONAL = (SCORES, CLASSES)
OUTPUTS: dict[str, tuple[DataType, Dims]] = {
    IDS: (dtypes.INT64, (-1,)),
    BOXES: (dtypes.FP32, (-1, 4)),
    SCORES: (dtypes.FP32, (-1,)),
    CLASSES: (dtypes.INT32, (-1,)),
    STATES: (dtypes.INT32, (-1,)),
}


def check(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) if a tensor of the configuration has another name, datatype or dims."""
    for what, tensors, known in (
        ("input", list(config.input), INPUTS),
        ("output", list(config.output), OUTPUTS),
    ):
        for each in tensors:
            _check_tensor(config.name, what, each, known)
    if BOXES not in {each.name for each in config.input}:
        raise invalid(f"model '{config.name}' has no input '{BOXES}', which the tracker needs")


def _check_tensor(
    model: str, what: str, tensor: Any, known: dict[str, tuple[DataType, Dims]]
) -> None:
    if tensor.name not in known:
        raise invalid(
            f"model '{model}' has an {what} '{tensor.name}'; the {what}s of a tracker are {', '.join(known)}"
        )
    dtype, dims = known[tensor.name]
    if tensor.data_type != dtype.number:
        found = dtypes.BY_NUMBER[tensor.data_type].config_name
        raise invalid(
            f"model '{model}': {what} '{tensor.name}' is {found}, it must be {dtype.config_name}"
        )
    found_dims = tuple(tensor.dims)
    fixed = len(found_dims) == len(dims) and found_dims[1:] == dims[1:] and what == "input"
    if found_dims != dims and not fixed:
        raise invalid(
            f"model '{model}': {what} '{tensor.name}' has dims {list(found_dims)}, they must be {list(dims)}"
        )
