"""classify: replaces the values of an output by its best classes (classification extension).

Source: Triton's protocol extension "classification"; the element format is
`<value>:<index>[:<label>]`, where a float has six decimals.
"""

from __future__ import annotations

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.errors import invalid
from core.tensor import Tensor

MOST_ELEMENTS = 1_000_000

_FLOATS = (dtypes.FP32, dtypes.FP64)
_INTEGERS: tuple[DataType, ...] = (
    dtypes.UINT8,
    dtypes.UINT16,
    dtypes.UINT32,
    dtypes.UINT64,
    dtypes.INT8,
    dtypes.INT16,
    dtypes.INT32,
    dtypes.INT64,
)


def classify(tensor: Tensor, class_count: int, labels: tuple[str, ...], batching: bool) -> Tensor:
    """Return the `class_count` largest values of each row as text, the largest first.

    tensor     numeric, [rows, …] if `batching`, else one row
    labels     labels of the classes by index; may be shorter than a row
    Return BYTES[rows, k] or BYTES[k], where k = min(class_count, elements of a row).
    Raise CoreError(INVALID) if the datatype is not supported, or the tensor is too large.
    """
    if tensor.dtype not in _FLOATS and tensor.dtype not in _INTEGERS:
        raise invalid(
            "class result not available for output due to unsupported type "
            f"'{tensor.dtype}' of '{tensor.name}'"
        )
    if tensor.count > MOST_ELEMENTS:
        raise invalid(
            f"classification output tensor too large: '{tensor.name}' has {tensor.count} elements, "
            f"at most {MOST_ELEMENTS} can be classified"
        )
    rows = tensor.shape[0] if batching and tensor.shape else 1
    table = tensor.array.reshape(rows, -1) if tensor.count else tensor.array.reshape(rows, 0)
    best = min(class_count, table.shape[1])
    # Sorted backwards, then read from the end: largest first, equal values by index.
    order = table.shape[1] - 1 - np.argsort(table[:, ::-1], axis=1, kind="stable")[:, ::-1]
    text = "{:f}" if tensor.dtype in _FLOATS else "{}"
    found = np.empty((rows, best), dtype=object)
    for row in range(rows):
        for place in range(best):
            index = int(order[row, place])
            label = f":{labels[index]}" if index < len(labels) and labels[index] else ""
            value = text.format(table[row, index].item())
            found[row, place] = f"{value}:{index}{label}".encode()
    shape = (rows, best) if batching else (best,)
    return Tensor(tensor.name, dtypes.BYTES, shape, array=found.reshape(shape))
