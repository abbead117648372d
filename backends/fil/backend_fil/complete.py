"""What the model file knows, written into a configuration: names, datatypes, dims, batching.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.  NVIDIA's backend wants it there.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from backend_fil.answers import INPUT, OUTPUT, SHAP, answers_of, output_dims, width_of
from backend_fil.files import load, model_file
from backend_fil.reading import Description, describe
from backend_fil.settings import Settings, settings_of
from core import dtypes
from core.backend import Backend
from core.config import ModelConfig
from core.errors import invalid

logger = logging.getLogger("core")

MAX_BATCH_SIZE = "default-max-batch-size"
_DEFAULT_MAX_BATCH_SIZE = (
    32768  # rows cost microseconds, so what bounds a batch is the size of a message
)


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    path   the version's folder
    Does nothing if every input and output is described. Raises CoreError if the file cannot be read.
    """
    tensors: list[Any] = [*config.input, *config.output]
    if config.input and config.output and all(io.data_type and io.dims for io in tensors):
        return
    settings = settings_of(config)
    file, kind = model_file(config, path, settings)
    model = load(file, kind, config.name, allow_unknown_field=settings.allow_unknown_field)
    description = describe(model, config.name)
    _complete_batching(config, backend)
    _complete_tensors(config, description, settings)


def default_max_batch_size(backend: Backend) -> int:
    """What --backend-config says, or 32768. Raises CoreError(INVALID) if it is no number."""
    text = backend.config.get(MAX_BATCH_SIZE, str(_DEFAULT_MAX_BATCH_SIZE))
    if not text.isascii() or not text.isdigit():
        raise invalid(f"--backend-config=fil,{MAX_BATCH_SIZE}={text}: it must be a whole number")
    return int(text)


def _complete_batching(config: ModelConfig, backend: Backend) -> None:
    """Rows are independent of each other, so a model batches unless its dims say that it does not."""
    tensors: list[Any] = [*config.input, *config.output]
    if not config.max_batch_size and not any(io.dims for io in tensors):
        config.max_batch_size = default_max_batch_size(backend)
        if config.max_batch_size:
            logger.warning(
                "autofilled max_batch_size to %d for model '%s' since batching is supported but no "
                "max_batch_size is specified in model configuration. Must specify max_batch_size to "
                "utilize autofill with a larger max batch size",
                config.max_batch_size,
                config.name,
            )
    if config.max_batch_size > 1 and config.WhichOneof("scheduling_choice") is None:
        config.dynamic_batching.SetInParent()


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
