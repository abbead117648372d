"""dims_of: the sizes of an input without the batch, from the model and --shape."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from core.errors import invalid
from core_bench.model.description import ModelInfo, TensorInfo


def check_names(given: Mapping[str, tuple[int, ...]], info: ModelInfo) -> None:
    """Raise CoreError for a --shape of an input that the model does not have."""
    names = [each.name for each in info.inputs]
    for name in given:
        if name not in names:
            near = [each for each in names if each.lower() == name.lower()]
            near = near or difflib.get_close_matches(name, names, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"it has: {', '.join(names)}"
            raise invalid(
                f"--shape names an input '{name}' that model '{info.name}' does not have; {hint}"
            )


def dims_of(tensor: TensorInfo, given: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return dimensions without -1. Raises CoreError if --shape is missing or contradicts the model."""
    wanted = given.get(tensor.name)
    if wanted is None:
        if -1 in tensor.dims:
            example = ",".join(str(each if each >= 0 else 1) for each in tensor.dims)
            raise invalid(
                f"input '{tensor.name}' has dims {list(tensor.dims)} of any size; "
                f"choose one, such as --shape {tensor.name}:{example}"
            )
        return tensor.dims
    check_dims(tensor, wanted, f"--shape {tensor.name}:{','.join(map(str, wanted))}")
    return wanted


def check_dims(tensor: TensorInfo, dims: tuple[int, ...], what: str) -> None:
    """Raise CoreError if dimensions without the batch do not fit those of the model."""
    fits = len(dims) == len(tensor.dims) and all(
        expected in (-1, found) for expected, found in zip(tensor.dims, dims, strict=True)
    )
    if not fits:
        raise invalid(
            f"{what} does not fit input '{tensor.name}', whose dims are {list(tensor.dims)}, "
            "without the batch dimension"
        )
