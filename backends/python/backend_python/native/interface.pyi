from typing import Any

def plain_number(array: Any) -> int:
    """Return the number of the datatype of an array that needs no conversion; 0 for any other object.

    It needs none if it is an np.ndarray, in C order and native byte order, with a dtype of a datatype.
    """

def array_of(buffer: Any, start: int, number: int, shape: tuple[int, ...]) -> Any:
    """Return an array of datatype `number` that shares the bytes of `buffer` from byte `start` on.

    BF16 becomes uint16; BYTES is not allowed. The array keeps `buffer` alive, and is writable if it is.
    Raises ValueError for an invalid shape, TypeError if the buffer is too small.
    """

def open_to_changes(cls: type) -> None:
    """Make a compiled class mutable, so that models can set attributes of it as of a Python class."""
