from typing import Any

def plain_number(array: Any) -> int:
    """Do what datatypes.plain_number does, faster: read numpy's own struct."""

def array_of(buffer: Any, start: int, number: int, shape: tuple[int, ...]) -> Any:
    """Do what datatypes.array_of does, faster for a buffer that is a contiguous numpy array.

    Raises ValueError for a wrong shape, and TypeError for one beyond the buffer.
    """

def open_to_changes(cls: type) -> None:
    """Let a model set attributes of a compiled class, as it can with those of Python."""
