"""Convert text for OpenVINO's Python interface, which takes and returns elements of one width.

feeding ─► [tensor_of] ─► infer ─► [elements_of] ─► instance.  One long element would make all elements as
long, so that a client could make the server allocate any amount of memory. Elements therefore pass in groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import openvino as ov

from core.batch import Batch
from core.errors import invalid

_SMALL = 1 << 16  # bytes that a padded group may take in any case
_TOGETHER = 256  # elements of an output that are read at once


def passable(array: np.ndarray, name: str, batch: Batch) -> np.ndarray:
    """Return the elements, and fail each request with an element that ends in a NUL byte.

    numpy would remove that byte. The elements of a failed request become empty.
    """
    if not any(element.endswith(b"\0") for element in array.reshape(-1)):
        return array
    elements = array.reshape(-1).copy()
    first = 0
    for i, request in enumerate(batch.requests):
        last = first + request.inputs[name].array.size
        if any(element.endswith(b"\0") for element in elements[first:last]):
            elements[first:last] = b""
            batch.fail(
                i,
                invalid(
                    f"input '{name}' of model '{batch.signature.name}' has an element that ends in a NUL "
                    "byte, which OpenVINO's Python interface cannot pass on"
                ),
            )
        first = last
    found: np.ndarray = elements.reshape(array.shape)
    return found


def tensor_of(array: np.ndarray) -> Any:
    """Return an openvino.Tensor with the elements of an array of bytes."""
    elements = array.reshape(-1)
    whole = ov.Tensor(ov.Type.string, ov.Shape([len(elements)]))
    for first, last in _groups([len(element) for element in elements]):
        part = ov.Tensor(whole, ov.Coordinate([first]), ov.Coordinate([last]))
        part.bytes_data = elements[first:last].astype("S")
    whole.shape = ov.Shape(array.shape)
    return whole


def _groups(lengths: list[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, last + 1) of neighbouring elements that need little padding to one width."""
    first = width = total = 0
    for i, length in enumerate(lengths):
        width = max(width, length)
        total += length
        if i > first and width * (i + 1 - first) > max(_SMALL, 4 * total):
            yield first, i
            first, width, total = i, length, length
    if lengths:
        yield first, len(lengths)


def elements_of(tensor: Any) -> np.ndarray:
    """Return an array of bytes with the elements of an openvino.Tensor."""
    shape = list(tensor.shape)
    if tensor.size <= _TOGETHER:
        return _read(tensor)
    rows = max(1, _TOGETHER * shape[0] // tensor.size)
    parts = []
    for first in range(0, shape[0], rows):
        begin = ov.Coordinate([first, *(0 for _ in shape[1:])])
        end = ov.Coordinate([min(first + rows, shape[0]), *shape[1:]])
        parts.append(_read(ov.Tensor(tensor, begin, end)))
    return np.concatenate(parts)


def _read(tensor: Any) -> np.ndarray:
    found: np.ndarray = tensor.bytes_data.astype(object)
    return found
