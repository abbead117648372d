"""Set one input of an infer request.

batch ─► [Feed] ─► infer.  Setting a tensor makes the next run about 10 µs longer, and making a new one costs
the same again (OpenVINO 2026.4). Small arrays are therefore copied into the tensor that the request has, as
long as the shape repeats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov

from backend_openvino.text import passable, tensor_of
from core.batch import Batch

_SMALL = 1 << 16  # a copy of this many bytes is faster than setting a tensor


class Feed:
    """Set one input of one infer request. Large writable arrays in C order are used without a copy.

    Invariant: `_kept` is the memory of the request's tensor for this input, None if it is not owned here.
    """

    def __init__(self, request: Any, name: str, index: int, kind: Any, scalar: bool):
        self.name = name
        self._request = request
        self._index = index
        self._type = kind
        self._is_text = kind == ov.Type.string
        self._scalar = scalar
        self._kept: np.ndarray | None = None

    def give(self, batch: Batch, missing: int) -> None:
        """Set the input of the next run to the rows of a batch, then `missing` rows of zeros or empty text.

        Fail each request with text that OpenVINO cannot take (`passable`).
        """
        array = batch[self.name]
        if self._is_text:
            array = passable(array, self.name, batch)
        if missing:
            array = _filled_up(array, missing)
        kept = self._kept
        if kept is not None and kept.shape == array.shape and self._is_copied(array):
            kept[...] = array
        else:
            self._set(array)

    def _is_copied(self, array: np.ndarray) -> bool:
        # OpenVINO may write to shared memory, so a read-only array is copied.
        return array.nbytes <= _SMALL or not array.flags.writeable

    def _set(self, array: np.ndarray) -> None:
        self._kept = None
        if self._scalar:
            array = array.reshape(())
        if self._is_text:
            self._request.set_input_tensor(self._index, tensor_of(array))
            return
        copied = self._is_copied(array)
        array = array.copy() if copied else np.asarray(array, order="C")
        tensor = ov.Tensor(array, list(array.shape), self._type)
        self._request.set_input_tensor(self._index, tensor)
        if copied:
            self._kept = array


def _filled_up(array: np.ndarray, missing: int) -> np.ndarray:
    whole = np.zeros((len(array) + missing, *array.shape[1:]), array.dtype)
    if array.dtype == object:
        whole[:] = b""
    whole[: len(array)] = array
    return whole
