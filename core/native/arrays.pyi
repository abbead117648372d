from typing import TypeGuard

import numpy as np

from core.tensor import Buffer

def view(raw: Buffer, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of `shape` over the elements in `raw`, without a copy. It keeps `raw` alive.

    It is read-only if `raw` is. Raise ValueError if the sizes differ.
    """

def has_dtype(value: object, dtype: np.dtype) -> TypeGuard[np.ndarray]:
    """Return whether a value is an np.ndarray, not of a subclass, whose dtype is the same object."""

def shape_of(array: np.ndarray) -> tuple[int, ...]:
    """Return `array.shape`."""

def flat(array: np.ndarray, dtype: np.dtype) -> bytes | memoryview:
    """Return the bytes of an array as `dtype`, row-major: a copy if they are few, else a read-only view."""

def length(raw: Buffer) -> int:
    """Return the size in bytes of an array, or of a contiguous object with the buffer protocol."""

def joined(parts: list[Buffer], alignment: int) -> bytes:
    """Return a copy of all parts, each at the next multiple of `alignment`, with zeros between.

    parts   arrays, copied in row-major order, or contiguous buffers
    The total size is a multiple of `alignment` too.
    """

def part(raw: Buffer, start: int, size: int) -> bytes | memoryview:
    """Return `size` bytes of a flat buffer from `start` on: a copy of `bytes`, else a view.

    Raise ValueError if `raw` has fewer bytes.
    """
