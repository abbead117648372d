"""Convert between numpy and torch on the host, without a copy unless the model writes to the memory.

batch ─► [inputs] ─► run ─► [outputs] ─► core.  numpy has no bfloat16: its bits are converted as int16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from core import dtypes
from core.dtypes import DataType


def tensor_of(array: np.ndarray, dtype: DataType, *, writes: bool) -> Any:
    """Return a torch tensor of an array of core.

    writes   whether the model may write to it; a read-only array (a view of a client's bytes) is copied then
    """
    if writes and not array.flags.writeable:
        array = array.copy()
    if any(stride < 0 for stride in array.strides):  # torch has no such strides
        array = np.ascontiguousarray(array)
    if dtype is dtypes.BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array_of(tensor: Any, *, copy: bool) -> np.ndarray:
    """Return a numpy array of a tensor on the host; BF16 as uint16 bit patterns.

    copy   whether to copy the memory, because the model may write to it again
    """
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        found: np.ndarray = tensor.contiguous().view(torch.int16).numpy().view(np.uint16)
    else:
        found = tensor.numpy()
    return found.copy() if copy else found


def text_of(array: np.ndarray) -> list[str]:
    """Convert bytes to str. Raises UnicodeDecodeError for bytes that are not UTF-8."""
    return [element.decode() for element in array.reshape(-1)]


def array_of_text(texts: list[str]) -> np.ndarray:
    found = np.empty(len(texts), object)
    found[:] = [text.encode() for text in texts]
    return found


def flat(result: Any) -> list[Any] | dict[str, Any]:
    """Return the outputs in the result of a module: in order, or by name if it is a mapping.

    A tensor, a list of str, and anything else that is no list, tuple or mapping is the only output.
    """
    if type(result) is torch.Tensor:
        return [result]
    if isinstance(result, Mapping):
        return dict(result)
    text = isinstance(result, list) and bool(result) and isinstance(result[0], str)
    return list(result) if isinstance(result, (tuple, list)) and not text else [result]
