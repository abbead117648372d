"""Complete a configuration from image.json: tensors, batches.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backend_image.recipe import FILE, read_recipe
from backend_image.stage import Stage, Tensor
from core import dtypes
from core.backend import Backend
from core.completion import default_max_batch_size, fill_scheduler
from core.config import ModelConfig
from core.errors import invalid

_MOST_ROWS = 16  # pictures are large, and one instance prepares one after the other


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in what config.pbtxt leaves out, in place.

    path   folder of the version
    Raises CoreError(INVALID) for a wrong file.
    """
    stage = read_recipe(path / (config.default_model_filename or FILE))
    described: list[Any] = [*config.input, *config.output]
    if not config.max_batch_size and not any(each.dims for each in described):
        config.max_batch_size = default_max_batch_size(backend, "image", _MOST_ROWS)
    fill_scheduler(config)
    inputs: Any = config.input
    outputs: Any = config.output
    if not inputs:
        for each in stage.inputs:
            inputs.add(name=each.name, optional=each.optional)
    if not outputs:
        for each in stage.outputs:
            outputs.add(name=each.name)
    for entries, tensors in ((inputs, stage.inputs), (outputs, stage.outputs)):
        known = {each.name: each for each in tensors}
        for entry in entries:
            if (tensor := known.get(entry.name)) is None:
                continue  # `check` refuses it
            entry.data_type = entry.data_type or tensor.dtype.number
            if not entry.dims:
                entry.dims.extend(tensor.dims)


def check(config: ModelConfig, stage: Stage) -> None:
    """Raise CoreError(INVALID) if a tensor of the configuration does not fit the stage."""
    inputs: list[Any] = list(config.input)
    outputs: list[Any] = list(config.output)
    given = {each.name for each in inputs}
    missing = [each.name for each in stage.inputs if not each.optional and each.name not in given]
    if missing:
        raise invalid(f"model '{config.name}' lacks the input {', '.join(missing)} of its {FILE}")
    for what, entries, known in (
        ("input", inputs, stage.inputs),
        ("output", outputs, stage.outputs),
    ):
        for entry in entries:
            _check(config.name, what, entry, {each.name: each for each in known})


def _check(model: str, what: str, entry: Any, known: dict[str, Tensor]) -> None:
    if entry.name not in known:
        raise invalid(
            f"model '{model}' has an {what} '{entry.name}'; its {FILE} has the {what}s {', '.join(known)}"
        )
    tensor = known[entry.name]
    if entry.data_type != tensor.dtype.number:
        found = dtypes.BY_NUMBER[entry.data_type].config_name
        raise invalid(
            f"model '{model}': {what} '{entry.name}' is {found}, its {FILE} says {tensor.dtype.config_name}"
        )
    dims = tuple(entry.dims)
    fits = len(dims) == len(tensor.dims) and all(
        have == want or -1 in (have, want) for have, want in zip(dims, tensor.dims, strict=True)
    )
    if not fits:
        raise invalid(
            f"model '{model}': {what} '{entry.name}' has dims {list(dims)}, its {FILE} says "
            f"{list(tensor.dims)}"
        )
