"""Helpers for Backend.complete, which fills a configuration from a model file.

config.pbtxt ─► fill ─► [Backend.complete] ─► normalise ─► validate.  The rules and the warning are those of
Triton's ONNX Runtime, TensorRT and OpenVINO backends.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from core.backend import Backend
from core.config import ModelConfig
from core.errors import CoreError, invalid

logger = logging.getLogger("core")

MAX_BATCH_SIZE = "default-max-batch-size"
DEFAULT_MAX_BATCH_SIZE = 4


def is_described(config: ModelConfig) -> bool:
    """Return whether `config` has (batch) inputs and outputs, and each input and output has type and dims."""
    inputs = bool(config.input or config.batch_input)
    tensors: list[Any] = [*config.input, *config.output]
    return inputs and bool(config.output) and all(io.data_type and io.dims for io in tensors)


def tensors_of_the_server(config: ModelConfig) -> tuple[set[str], set[str]]:
    """Return the names of inputs that the server creates, and of outputs that it keeps.

    The inputs are controls, states and batch inputs; the outputs are states.
    """
    sequence = config.sequence_batching
    inputs = {control.name for control in sequence.control_input}
    inputs |= {state.input_name for state in sequence.state}
    inputs |= {name for each in config.batch_input for name in each.target_name}
    return inputs, {state.output_name for state in sequence.state}


def wrong_inputs(
    model: str, given: Collection[str], provided: Collection[str], missing: Collection[str]
) -> CoreError:
    """Return the error for a configuration that lacks inputs of the file. It also names unknown inputs.

    given      inputs of the configuration
    provided   inputs of the file, optional ones included
    missing    inputs that the file requires and the configuration lacks
    """
    unknown = sorted(set(given) - set(provided))
    has = f", and has {', '.join(unknown)}, which the model does not have" if unknown else ""
    return invalid(
        f"unable to load model '{model}', configuration expects {len(given)} inputs, model provides "
        f"{len(provided)}; config.pbtxt lacks {', '.join(missing)}{has}"
    )


def default_max_batch_size(
    backend: Backend, name: str, otherwise: int = DEFAULT_MAX_BATCH_SIZE
) -> int:
    """Return the value of default-max-batch-size in --backend-config, else `otherwise`; 0 for no batching.

    name   of the backend in --backend-config
    Raises CoreError(INVALID) if the value is not a whole number.
    """
    text = backend.config.get(MAX_BATCH_SIZE, str(otherwise))
    if not text.isascii() or not text.isdigit():
        raise invalid(f"--backend-config={name},{MAX_BATCH_SIZE}={text}: it must be a whole number")
    return int(text)


def fill_max_batch_size(config: ModelConfig, rows: int) -> None:
    """Set max_batch_size to `rows`; unless that is 0, log a warning that tells of it."""
    config.max_batch_size = rows
    if rows:
        logger.warning(
            "autofilled max_batch_size to %d for model '%s' since batching is supported but no "
            "max_batch_size is specified in model configuration. Must specify max_batch_size to "
            "utilize autofill with a larger max batch size",
            rows,
            config.name,
        )


def fill_scheduler(config: ModelConfig) -> None:
    """Add dynamic batching to a model with a max_batch_size above 1 and without a scheduler."""
    if config.max_batch_size > 1 and config.WhichOneof("scheduling_choice") is None:
        config.dynamic_batching.SetInParent()
