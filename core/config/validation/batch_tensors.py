"""Rules of batch_input and batch_output: tensors that the server computes for a whole batch."""

from __future__ import annotations

from collections.abc import Sequence

from core.config.messages import TYPE_FP32, TYPE_INT32, BatchInput, BatchOutput, ModelConfig
from core.config.validation.refusal import refused


def check_batch_tensors(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for a wrong kind, source input, target output or datatype of an input."""
    for index, batch_input in enumerate(config.batch_input):
        place = f"batch_input[{index}]"
        what = f"batch input kind '{_kind(config, batch_input, 'input', place)}'"
        _check_source_count(config, batch_input.source_input, what, place)
        if batch_input.data_type not in (TYPE_INT32, TYPE_FP32):
            text = "batch input data type must be TYPE_INT32 or TYPE_FP32"
            raise refused(config, text, f"{place}.data_type")
        _check_source(config, batch_input.source_input[0], place)
    for index, batch_output in enumerate(config.batch_output):
        place = f"batch_output[{index}]"
        what = f"batch output kind '{_kind(config, batch_output, 'output', place)}'"
        _check_source_count(config, batch_output.source_input, what, place)
        _check_source(config, batch_output.source_input[0], place)
        _check_targets(config, batch_output.target_name, place)


def _kind(config: ModelConfig, found: BatchInput | BatchOutput, what: str, place: str) -> str:
    """Return the name of a tensor's kind. Raises CoreError(INVALID) for an unknown number."""
    kinds = BatchInput.Kind if isinstance(found, BatchInput) else BatchOutput.Kind
    if found.kind not in kinds.values():
        text = f"unknown batch {what} kind '{found.kind}'"
        raise refused(config, text, f"{place}.kind; there are {', '.join(kinds.keys())}")
    return str(kinds.Name(found.kind))


def _check_source_count(config: ModelConfig, sources: Sequence[str], what: str, place: str) -> None:
    if len(sources) != 1:
        text = f"{what} expects 1 source input, got {len(sources)}"
        raise refused(config, text, f"{place}.source_input")


def _check_source(config: ModelConfig, source: str, place: str) -> None:
    inputs = [io.name for io in config.input]
    if source not in inputs:
        there = ", ".join(inputs) or "none"
        text = f"unknown source input name '{source}'"
        raise refused(config, text, f"{place}.source_input; inputs are {there}")


def _check_targets(config: ModelConfig, targets: Sequence[str], place: str) -> None:
    outputs = [io.name for io in config.output]
    seen = set()
    for index, name in enumerate(targets):
        target = f"{place}.target_name[{index}]"
        if name not in outputs:
            there = ", ".join(outputs) or "none"
            text = f"unknown target output name '{name}'"
            raise refused(config, text, f"{target}; outputs are {there}")
        if name in seen:
            raise refused(config, f"target output name '{name}' can only be specified once", target)
        seen.add(name)
