"""What backends share that write into a configuration what a model file knows.

config.pbtxt ─► fill ─► [Backend.complete] ─► normalise ─► validate.  The rules and the warning are those that
Triton's ONNX Runtime, TensorRT and OpenVINO backends have in common.
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
    """Whether a person has described every input and output: then that is meant, and nothing is filled in."""
    inputs = bool(config.input or config.batch_input)
    tensors: list[Any] = [*config.input, *config.output]
    return inputs and bool(config.output) and all(io.data_type and io.dims for io in tensors)


def tensors_of_the_server(config: ModelConfig) -> tuple[set[str], set[str]]:
    """Inputs of the model that no client sends, and outputs that none gets: controls, states, …"""
    sequence = config.sequence_batching
    inputs = {control.name for control in sequence.control_input}
    inputs |= {state.input_name for state in sequence.state}
    inputs |= {name for each in config.batch_input for name in each.target_name}
    return inputs, {state.output_name for state in sequence.state}


def wrong_inputs(
    model: str, given: Collection[str], provided: Collection[str], missing: Collection[str]
) -> CoreError:
    """The refusal of a configuration that leaves out inputs of the file; it names those that are unknown too.

    given      inputs of the configuration
    provided   inputs of the file, those that may be left out included
    missing    those that the file needs and the configuration has not
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
    """What --backend-config says, or `otherwise`; 0 for no batches.

    name   of the backend, as --backend-config has it
    Raises CoreError(INVALID) if it is no number.
    """
    text = backend.config.get(MAX_BATCH_SIZE, str(otherwise))
    if not text.isascii() or not text.isdigit():
        raise invalid(f"--backend-config={name},{MAX_BATCH_SIZE}={text}: it must be a whole number")
    return int(text)


def fill_max_batch_size(config: ModelConfig, rows: int) -> None:
    """Write max_batch_size, and warn of it."""
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
    """A model of several rows that has no scheduler gets dynamic batching."""
    if config.max_batch_size > 1 and config.WhichOneof("scheduling_choice") is None:
        config.dynamic_batching.SetInParent()
