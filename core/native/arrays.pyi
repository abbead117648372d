import numpy as np

from core.tensor import Buffer

def view(raw: Buffer, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """An array of `shape` over the elements in `raw`, which it keeps alive; nothing is copied.

    Read-only where `raw` is. Raises ValueError if the shape has not as many bytes as `raw`.
    """

def flat(array: np.ndarray) -> bytes | memoryview:
    """The bytes of a C-contiguous array, row-major: a copy of a small one, else a read-only view.

    Raises ValueError if it is not contiguous.
    """

def length(raw: Buffer) -> int:
    """Bytes of a contiguous object with the buffer protocol."""
