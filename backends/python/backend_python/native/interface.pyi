from typing import Any

def plain_number(array: Any) -> int:
    """As datatypes.plain_number, from numpy's own struct."""

def open_to_changes(cls: type) -> None:
    """Let a model set attributes of a compiled class, as it can with those of Python."""
