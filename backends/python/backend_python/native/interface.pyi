from typing import Any

def plain_number(array: Any) -> int:
    """As datatypes.plain_number, from numpy's own struct."""

def array_of(buffer: Any, start: int, number: int, shape: tuple[int, ...]) -> Any:
    """As datatypes.array_of, without a call of numpy's constructor where the buffer is an array."""

def open_to_changes(cls: type) -> None:
    """Let a model set attributes of a compiled class, as it can with those of Python."""
