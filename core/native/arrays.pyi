from typing import TypeGuard

import numpy as np

from core.tensor import Buffer

def view(raw: Buffer, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """An array of `shape` over the elements in `raw`, which it keeps alive; nothing is copied.

    Read-only where `raw` is. Raises ValueError if the shape has not as many bytes as `raw`.
    """

def has_dtype(value: object, dtype: np.dtype) -> TypeGuard[np.ndarray]:
    """Whether a value is an array, of no subclass, whose dtype is that very object."""

def flat(array: np.ndarray, dtype: np.dtype) -> bytes | memoryview:
    """The bytes of an array as `dtype`, row-major: a copy of a small one, else a read-only view."""

def length(raw: Buffer) -> int:
    """Bytes of a contiguous object with the buffer protocol."""
