"""Complete a configuration from the model file: names, datatypes, dims, batching.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.  NVIDIA's backend requires them in
config.pbtxt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backend_fil.answers import INPUT, OUTPUT, SHAP, answers_of, output_dims, width_of
from backend_fil.files import load, model_file
from backend_fil.reading import Description, describe
from backend_fil.settings import Settings, settings_of
from core import dtypes
from core.backend import Backend
from core.completion import (
    default_max_batch_size,
    fill_max_batch_size,
    fill_scheduler,
    is_described,
)
from core.config import ModelConfig

# A row costs microseconds, so only the size of a message limits a batch.
_DEFAULT_MAX_BATCH_SIZE = 32768


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    path   the version's folder
    Does nothing if every input and output is described. Raises CoreError if the file cannot be read.
    """
    if is_described(config):
        return
    settings = settings_of(config)
    file, kind = model_file(config, path, settings)
    model = load(file, kind, config.name, allow_unknown_field=settings.allow_unknown_field)
    complete_from(describe(model, config.name), config, settings, backend)


def complete_from(
    description: Description, config: ModelConfig, settings: Settings, backend: Backend
) -> None:
    """Fill in what a configuration lacks from the header of a model file."""
    # Rows are independent, so there are batches, unless the configuration has dims without one.
    tensors: list[Any] = [*config.input, *config.output]
    if not config.max_batch_size and not any(io.dims for io in tensors):
        fill_max_batch_size(config, default_max_batch_size(backend, "fil", _DEFAULT_MAX_BATCH_SIZE))
    fill_scheduler(config)
    _complete_tensors(config, description, settings)


def _complete_tensors(config: ModelConfig, description: Description, settings: Settings) -> None:
    batches = bool(config.max_batch_size)
    features = (description.features,)
    if not config.input:
        config.input.add(name=INPUT)
    if not config.output:
        config.output.add(name=OUTPUT)
    inputs: list[Any] = list(config.input)
    outputs: list[Any] = list(config.output)
    for entry in inputs:
        _complete(entry, features if batches else (-1, *features))
    for entry in outputs:
        if entry.name == SHAP:
            dims = description.shap_dims
            _complete(entry, dims if batches else (-1, *dims))
        else:
            wanted = width_of(entry.dims, batches) if entry.dims else None
            width = answers_of(settings, description, wanted).width
            _complete(entry, output_dims(width, batches))


def _complete(entry: Any, dims: tuple[int, ...]) -> None:
    entry.data_type = entry.data_type or dtypes.FP32.number
    if not entry.dims:
        entry.dims.extend(dims)
