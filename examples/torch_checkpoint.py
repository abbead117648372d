"""Write a checkpoint as torch.save writes one, without torch.

The file is a zip archive, not compressed: `data.pkl` holds the state dict, in which each tensor refers
to a storage; `data/<key>` holds the bytes of that storage. torch.load(…, weights_only=True) reads it.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

_STORAGES = {"f4": "FloatStorage", "f8": "DoubleStorage", "i8": "LongStorage"}
_WRITTEN = (1980, 1, 1, 0, 0, 0)  # the same weights give the same file


def write(path: Path, state: Mapping[str, np.ndarray]) -> None:
    """Write a state dict: name → array of float32, float64 or int64."""
    name = path.stem
    arrays = [np.ascontiguousarray(array) for array in state.values()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:

        def add(entry: str, content: bytes) -> None:
            archive.writestr(zipfile.ZipInfo(f"{name}/{entry}", _WRITTEN), content)

        add("data.pkl", _pickled(dict(zip(state, arrays, strict=True))))
        add("byteorder", b"little")
        for key, array in enumerate(arrays):
            add(f"data/{key}", array.tobytes())
        add("version", b"3\n")


def _pickled(state: Mapping[str, np.ndarray]) -> bytes:
    """OrderedDict of name → tensor, in opcodes of pickle protocol 2.

    By hand, since pickle writes the name of a class only if it can import it, here from torch.
    """
    tensors = [
        _text(name) + _tensor(str(key), array) for key, (name, array) in enumerate(state.items())
    ]
    return b"\x80\x02" + _ORDERED_DICT + b"(" + b"".join(tensors) + b"u."


def _tensor(key: str, array: np.ndarray) -> bytes:
    """torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)"""
    strides = [step // array.itemsize for step in array.strides]
    storage = _tuple(
        _text("storage"),
        _global("torch", _STORAGES[array.dtype.str[1:]]),
        _text(key),
        _text("cpu"),
        _number(array.size),
    )
    arguments = (
        storage + b"Q",  # refer to what lies outside of the pickle
        _number(0),
        _tuple(*map(_number, array.shape)),
        _tuple(*map(_number, strides)),
        b"\x89",  # False
        _ORDERED_DICT,
    )
    return _global("torch._utils", "_rebuild_tensor_v2") + _tuple(*arguments) + b"R"


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text.encode())) + text.encode()


def _number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def _tuple(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


_ORDERED_DICT = _global("collections", "OrderedDict") + b")R"
