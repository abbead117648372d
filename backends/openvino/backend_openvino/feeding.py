"""One input of an infer request: arrays as OpenVINO takes them.

batch ─► [Feed] ─► infer.  A tensor that is set makes the next run about 10 µs longer, and a new one costs
as much again (OpenVINO 2026.4), so what is small goes into the tensor that the request has, as long as
shapes repeat.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov

from backend_openvino.text import passable, tensor_of
from core.batch import Batch

_SMALL = 1 << 16  # bytes that are copied faster than a tensor is set


class Feed:
    """Large writable arrays in C order are used where they are, others are copied once. Invariant:

    `_kept` is the memory of the tensor that the request has for this input, None where it is not ours.
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
        """Let the next run read what a batch brings, and as many rows of zeros as are missing."""
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
        # OpenVINO shares no memory that it might write to.
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
