from typing import TypeGuard

import numpy as np

from core.tensor import Buffer

def view(raw: Buffer, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of `shape` and `dtype` over the bytes of `raw`, without a copy. It keeps `raw` alive.

    It is read-only if `raw` is. Raise ValueError unless `raw` has exactly the bytes of such an array.
    """

def joint_view(arrays: list[np.ndarray], dtype: np.dtype) -> np.ndarray | None:
    """Return a read-only view of arrays of `dtype` that follow each other in one array; else None."""

def has_dtype(value: object, dtype: np.dtype) -> TypeGuard[np.ndarray]:
    """Return whether a value is an np.ndarray (no subclass), whose dtype is the object `dtype` itself."""

def shape_of(array: np.ndarray) -> tuple[int, ...]:
    """Return `array.shape`."""

def flat(array: np.ndarray, dtype: np.dtype) -> bytes | memoryview:
    """Return an array, converted to `dtype`, as row-major bytes: a small copy, else a read-only view."""

def length(raw: Buffer) -> int:
    """Return the size in bytes of an array, or of another contiguous object with the buffer protocol."""

def joined(parts: list[Buffer], alignment: int) -> bytes:
    """Return a copy of all parts, each at the next multiple of `alignment`, with zeros between.

    parts   arrays, copied in row-major order, or contiguous buffers
    The total size is a multiple of `alignment` too.
    """

def part(raw: Buffer, start: int, size: int) -> bytes | memoryview:
    """Return `size` bytes of a flat buffer from `start` on: a copy if `raw` is `bytes`, else a memoryview.

    Raise ValueError if `raw` is `bytes` and has fewer bytes; a memoryview is shorter then.
    """
