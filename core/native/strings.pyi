from collections.abc import Iterable
from typing import Any

import numpy as np

from core.tensor import Buffer

def count(data: Buffer) -> tuple[int, int]:
    """(whole elements in `data`, bytes left after them). Never raises for malformed data."""

def offsets(data: Buffer, counts: Iterable[int]) -> list[int]:
    """Where each group of elements starts in `data`, and where the last ends.

    counts  elements of each group, in order
    Returns n + 1 byte positions. Raises ValueError if the data ends early.
    """

def decode(data: Buffer, n: int) -> np.ndarray:
    """The `n` elements as object[n] of `bytes` (copies).

    Raises ValueError if `data` is not exactly n elements.
    """

def encode(array: Any) -> bytes:
    """The wire form of an array of `bytes` (as they are) and `str` (UTF-8), row-major.

    Other objects are written as their str(), as tritonclient does.
    Fixed-width numpy bytes lose their trailing NULs, as numpy defines them.
    """
