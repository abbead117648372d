from typing import Any

import numpy as np

from core.tensor import Buffer

def count(data: Buffer) -> tuple[int, int]:
    """(whole elements in `data`, bytes left after them). Never raises for malformed data."""

def decode(data: Buffer, n: int) -> np.ndarray:
    """The `n` elements as object[n] of `bytes` (copies).

    Raises ValueError if `data` is not exactly n elements.
    """

def encode(array: Any) -> bytes:
    """The wire form of an array of `bytes` (as they are) and `str` (UTF-8), row-major.

    Other objects are written as their str(), as tritonclient does.
    Fixed-width numpy bytes lose their trailing NULs, as numpy defines them.
    """
