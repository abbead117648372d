"""The values and shapes of the outputs of a forest.

settings, description, config.pbtxt ─► [answers] ─► instance.  The rules are those of NVIDIA's FIL backend:
classes or probabilities, class 1 above a threshold, a single value without its own dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backend_fil.reading import Description
from backend_fil.settings import Settings
from core import dtypes
from core.config import ModelConfig
from core.errors import CoreError, invalid

INPUT = "input__0"
OUTPUT = "output__0"
SHAP = "treeshap_output"


@dataclass(frozen=True)
class Answers:
    """How sums of leaves become the values of the output.

    link, form   arguments of native.forest.Forest.finish
    width        values per row
    """

    link: str
    form: str
    width: int


def classifies(settings: Settings, description: Description) -> bool:
    """Return whether the model is a classifier: by parameter is_classifier, else by the training task."""
    said = settings.is_classifier
    return description.classifies if said is None else said


def answers_of(settings: Settings, description: Description, width: int | None = None) -> Answers:
    """Return which values the output of a model has: classes, probabilities or numbers.

    width   values per row in config.pbtxt, None if it leaves them open. It matters only for a binary
            classifier with predict_proba: 1 means the probability of class 1, else there are both
    For a regressor, predict_proba has no effect.
    """
    classes, link = description.classes, description.link
    if settings.predict_proba and (classes > 1 or classifies(settings, description)):
        if classes > 1:
            # Leaves with a value for every class are probabilities already, or the link makes them.
            return Answers(link if description.has_vectors else "softmax", "values", classes)
        return Answers(link, "values", 1) if width == 1 else Answers(link, "pair", 2)
    if classifies(settings, description):
        return Answers(link, "argmax" if classes > 1 else "threshold", 1)
    return Answers(link, "values", classes)


def output_dims(width: int, batches: bool) -> tuple[int, ...]:
    """Return the dims of an output whose dims config.pbtxt leaves out.

    width     values per row
    batches   whether max_batch_size is set; otherwise the dims begin with -1 for the rows
    """
    if batches:
        return (width,)
    return (-1, width) if width > 1 else (-1,)


def width_of(dims: Sequence[int], batches: bool) -> int | None:
    """Return the number of values per row in a tensor of these dims; None if a dim of the row is -1.

    batches   whether max_batch_size is set; otherwise the first dim is the rows
    """
    rest = list(dims) if batches else list(dims)[1:]
    return None if -1 in rest else math.prod(rest)


def row_shape(dims: Sequence[int], batches: bool) -> tuple[int, ...]:
    """Return the output shape of one row.

    With batching, dims of size 1 are left out, so that a single value has no dimension, as in NVIDIA's
    backend. Without batching, all dims after the first stay.
    """
    if not batches:
        return tuple(dims)[1:]
    return tuple(dim for dim in dims if dim != 1)


def check(config: ModelConfig, description: Description, settings: Settings) -> None:
    """Compare the tensors of a configuration with the forest.

    Raises CoreError(INVALID) for a name, datatype or shape that does not fit, with the values of both.
    """
    name, batches = config.name, bool(config.max_batch_size)
    names = [io.name for io in config.input]
    if names != [INPUT]:
        raise invalid(
            f"model '{name}': backend fil has one input, '{INPUT}'; config.pbtxt has {_listed(names)}"
        )
    unknown = [io.name for io in config.output if io.name not in (OUTPUT, SHAP)]
    if unknown:
        raise invalid(
            f"model '{name}': backend fil has the outputs '{OUTPUT}' and '{SHAP}'; config.pbtxt has "
            f"{_listed(unknown)}"
        )
    tensors: list[Any] = [*config.input, *config.output]
    for io in tensors:
        if io.data_type != dtypes.FP32.number:
            found = dtypes.BY_NUMBER[io.data_type].config_name
            raise invalid(f"model '{name}': '{io.name}' is {found}, it must be TYPE_FP32")
    dims = _dims(config.input[0])
    if width_of(dims, batches) not in (None, description.features) or not (
        batches or len(dims) > 1
    ):
        raise _misfit(
            config, INPUT, dims, f"the forest has {description.features} features", "a row"
        )
    for io in config.output:
        dims = _dims(io)
        width = width_of(dims, batches)
        if io.name == OUTPUT:
            expected = answers_of(settings, description, width).width
            why = f"the forest answers {expected} value{'s' if expected > 1 else ''} for each row"
        else:
            expected = math.prod(description.shap_dims)
            why = f"its Shapley values are {list(description.shap_dims)}"
        if width not in (None, expected):
            raise _misfit(config, io.name, dims, why, _kind(settings, description))


def _kind(settings: Settings, description: Description) -> str:
    """Return a text for errors about the kind of model that results from the settings and the file."""
    if description.classes > 1 and settings.predict_proba:
        return f"{description.classes} classes, predict_proba true"
    if classifies(settings, description):
        if settings.predict_proba:
            return "2 classes, predict_proba true"
        return "a classifier, predict_proba false"
    return "no classifier; parameter 'is_classifier' makes it one"


def _misfit(config: ModelConfig, io: str, dims: Sequence[int], found: str, why: str) -> CoreError:
    whole = " of a batch" if config.max_batch_size else " with max_batch_size 0"
    return invalid(
        f"model '{config.name}': dims {list(dims)} of '{io}'{whole} do not fit: {found} ({why}); "
        "change dims in config.pbtxt, or leave them out to have them filled in"
    )


def _dims(io: Any) -> list[int]:
    """Return the dims of a tensor after its reshape."""
    return list(io.reshape.shape if io.HasField("reshape") else io.dims)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
