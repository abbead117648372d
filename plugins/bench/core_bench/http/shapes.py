"""Shapes of inputs in the JSON of a caller, as flags of core bench. Other distributions use it, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import invalid

_MOST_INPUTS = 64
_MOST_DIMS = 32
_MOST_ELEMENTS = 1 << 28  # of an input


def check_shapes(value: Any) -> None:
    """Check that a value is input → dims without the batch. Raises CoreError(INVALID)."""
    if not isinstance(value, dict) or len(value) > _MOST_INPUTS:
        raise invalid(
            f"shapes is {value!r:.100}; expected an object with the dims of at most {_MOST_INPUTS} inputs"
        )
    for name, dims in value.items():
        is_right = isinstance(dims, list) and 1 <= len(dims) <= _MOST_DIMS and bool(name)
        if not is_right or not all(type(each) is int and each >= 0 for each in dims):
            raise invalid(
                f"shapes has {dims!r:.100} for '{name[:64]}'; expected a list of whole numbers from 0 on"
            )
        elements = 1
        for each in dims:
            elements *= each
        if elements > _MOST_ELEMENTS:
            raise invalid(
                f"shapes has {elements:,} elements for '{name[:64]}'; expected at most {_MOST_ELEMENTS:,}"
            )


def shape_flags(shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Return a --shape for each input."""
    return [f"--shape={name}:{','.join(map(str, dims))}" for name, dims in shapes.items()]
