"""Arguments of functions that are no inputs, and the rows of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONTEXT = "__triton_context__"


def without_special(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs among keyword arguments."""
    return {name: value for name, value in arguments.items() if name != CONTEXT}


def rows_of(inputs: Mapping[str, Any]) -> int:
    """Return the first dimension of the first input."""
    return int(next(iter(inputs.values())).shape[0])
