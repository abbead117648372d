from typing import TypeGuard

import numpy as np

from core.tensor import Buffer

def view(raw: Buffer, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """An array of `shape` over the elements in `raw`, which it keeps alive; nothing is copied.

    Read-only where `raw` is. Raises ValueError if the shape has not as many bytes as `raw`.
    """

def has_dtype(value: object, dtype: np.dtype) -> TypeGuard[np.ndarray]:
    """Whether a value is an array, of no subclass, whose dtype is that very object."""

def shape_of(array: np.ndarray) -> tuple[int, ...]:
    """Its dimensions, as `array.shape` has them."""

def flat(array: np.ndarray, dtype: np.dtype) -> bytes | memoryview:
    """The bytes of an array as `dtype`, row-major: a copy of a small one, else a read-only view."""

def length(raw: Buffer) -> int:
    """Bytes of an array, or of a contiguous object with the buffer protocol."""

def joined(parts: list[Buffer], alignment: int) -> bytes:
    """A copy of all parts, each behind the one before at the next multiple of `alignment`, zeros between.

    parts   arrays, of which the elements are copied in row-major order, or contiguous buffers
    The end is at a multiple of `alignment` too.
    """

def part(raw: Buffer, start: int, size: int) -> bytes | memoryview:
    """`size` bytes of a flat buffer from `start` on: a copy of bytes, else a view.

    Raises ValueError if bytes have not as many.
    """
