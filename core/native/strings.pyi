from typing import Any

import numpy as np

from core.tensor import Buffer

def count(data: Buffer) -> tuple[int, int]:
    """Return (number of complete elements in `data`, number of bytes after them), also for malformed data."""

def decode(data: Buffer, n: int) -> np.ndarray:
    """Return the elements of `data`, in the wire form, as an object array of `n` `bytes` (copies).

    Raise ValueError unless `data` has exactly `n` elements.
    """

def encode(array: Any) -> bytes:
    """Return the wire form of an array of `str` (as UTF-8) and `bytes` or similar, row-major.

    Other objects are written as str(object), as tritonclient does. Fixed-width numpy bytes lose trailing
    NULs. Raise ValueError for an element of 4 GiB or more.
    """
