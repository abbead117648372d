from typing import Any

import numpy as np

from core.tensor import Buffer

def count(data: Buffer) -> tuple[int, int]:
    """Return (complete elements in `data`, bytes left after them). Never raise for malformed data."""

def decode(data: Buffer, n: int) -> np.ndarray:
    """Return the `n` elements as object[n] of `bytes` (copies).

    Raise ValueError for another number of elements.
    """

def encode(array: Any) -> bytes:
    """Return the wire form of an array of `bytes` and `str` (as UTF-8), row-major.

    Other objects are written as str(object), as tritonclient does. Fixed-width numpy bytes lose trailing
    NULs.
    """
