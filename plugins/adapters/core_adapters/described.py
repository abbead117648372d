"""What a model tells of its inputs and outputs, written into its configuration."""

from __future__ import annotations

from typing import Any, NamedTuple

from backend_python.api.model_config import ModelConfig


class Described(NamedTuple):
    """A tensor whose first dimension is the rows.

    dims   without the rows; -1 for any size
    """

    name: str
    data_type: str
    dims: list[int]


def describe(config: ModelConfig, inputs: list[Described], outputs: list[Described]) -> None:
    """Add inputs where config.pbtxt has none, and outputs likewise.

    With a max_batch_size the rows are the batch dimension, else a dimension of their own.
    """
    known = config.as_dict()
    rows = [] if known["max_batch_size"] > 0 else [-1]
    if not known["input"]:
        for each in inputs:
            config.add_input(_entry(each, rows))
    if not known["output"]:
        for each in outputs:
            config.add_output(_entry(each, rows))


def is_described(config: dict[str, Any]) -> bool:
    """Whether config.pbtxt has all that could be added."""
    return bool(config["input"] and config["output"])


def rank(config: dict[str, Any], tensor: dict[str, Any]) -> int:
    """Number of dimensions of an input or output in requests."""
    shape = tensor["reshape"]["shape"] if tensor.get("reshape") else tensor["dims"]
    return int(len(shape) + (config["max_batch_size"] > 0))


def _entry(tensor: Described, rows: list[int]) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "data_type": tensor.data_type,
        "dims": [*rows, *tensor.dims] or [1],
    }
