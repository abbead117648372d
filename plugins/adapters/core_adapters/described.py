"""Write the inputs and outputs that a model describes into its configuration."""

from __future__ import annotations

from typing import Any, NamedTuple

from backend_python.api.model_config import ModelConfig


class Described(NamedTuple):
    """An input or output whose first dimension is the rows.

    dims   dimensions without the rows; -1 for any size
    """

    name: str
    data_type: str
    dims: list[int]


def describe(config: ModelConfig, inputs: list[Described], outputs: list[Described]) -> None:
    """Add inputs if the configuration has none, and outputs if it has none.

    If max_batch_size is not 0, the rows are the batch dimension, which dims leave out; otherwise dims begin
    with -1 for the rows.
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
    """Return whether the configuration has at least one input and at least one output."""
    return bool(config["input"] and config["output"])


def rank(config: dict[str, Any], tensor: dict[str, Any]) -> int:
    """Return the number of dimensions of a tensor in requests, with the batch dimension."""
    shape = tensor["reshape"]["shape"] if tensor.get("reshape") else tensor["dims"]
    return int(len(shape) + (config["max_batch_size"] > 0))


def _entry(tensor: Described, rows: list[int]) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "data_type": tensor.data_type,
        "dims": [*rows, *tensor.dims] or [1],
    }
