"""The forms of outputs: JSON, .npz, raw bytes."""

from __future__ import annotations

import base64
import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from core import dtypes
from core.tensor import Tensor
from core_jobs.offline.item import Responses

FORMS = ("jsonl", "npz", "raw")
# Of the files that `written` makes: index, number of the response, form.
_NAME = re.compile(r"\d{8,}(?:-\d+)?(?:\.npz|-[A-Za-z0-9_.-]+\.bin)")


def written(form: str, folder: Path, index: int, responses: Responses) -> dict[str, Any]:
    """Write what has files of its own; return the members of the item's line in the results. Any thread.

    form   one of FORMS
    """
    if form == "jsonl":
        if len(responses) == 1:
            return {"outputs": _object(responses[0])}
        return {"responses": [_object(each) for each in responses]}
    names = []
    for number, outputs in enumerate(responses):
        stem = f"{index:08d}" if len(responses) == 1 else f"{index:08d}-{number}"
        names += _files(form, folder, stem, outputs)
    return {"files": names}


def is_output(name: str) -> bool:
    """Return whether a file has the name of one that `written` makes."""
    return _NAME.fullmatch(name) is not None


def _files(form: str, folder: Path, stem: str, outputs: Sequence[Tensor]) -> list[str]:
    if form == "npz":
        _put(folder / f"{stem}.npz", lambda file: _write_npz(file, outputs))
        return [f"{stem}.npz"]
    names = []
    for each in outputs:
        name = f"{stem}-{re.sub(r'[^A-Za-z0-9_.-]', '_', each.name)}.bin"
        data = each.array.flat[0] if _is_one_text(each) else each.raw
        _put(folder / name, lambda file, data=data: file.write(data))
        names.append(name)
    return names


def _write_npz(file: BinaryIO, outputs: Sequence[Tensor]) -> None:
    """Write arrays as numpy.savez does; that function takes some names for arguments of its own."""
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for each in outputs:
            with archive.open(f"{each.name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, _plain(each), allow_pickle=False)


def _put(path: Path, write: Any) -> None:
    """Write a file as a whole: a run that is killed leaves no half of one under its name."""
    temporary = path.with_name(f".{path.name}")
    with open(temporary, "wb") as file:
        write(file)
    os.replace(temporary, path)


def _is_one_text(tensor: Tensor) -> bool:
    return tensor.dtype is dtypes.BYTES and tensor.count == 1


def _plain(tensor: Tensor) -> np.ndarray:
    """Return an array that numpy can load without pickle: texts of fixed width, BF16 as FP32."""
    if tensor.dtype is dtypes.BF16:
        return _widened(tensor)
    if tensor.dtype is dtypes.BYTES:
        # A fixed width drops zeros at the end of an element.
        if any(each.endswith(b"\0") for each in tensor.array.flat):
            return np.frombuffer(bytes(memoryview(tensor.raw)), np.uint8)
        return tensor.array.astype("S")
    return tensor.array


def _widened(tensor: Tensor) -> np.ndarray:
    return (tensor.array.astype(np.uint32) << 16).view(np.float32)


def _object(outputs: Sequence[Tensor]) -> dict[str, Any]:
    return {each.name: _value(each) for each in outputs}


def _value(tensor: Tensor) -> Any:
    if tensor.dtype is dtypes.BYTES:
        texts = np.empty(tensor.count, object)
        for at, each in enumerate(tensor.array.flat):
            texts[at] = _text(each)
        return texts.reshape(tensor.shape).tolist()
    if tensor.dtype is dtypes.BF16:
        return _widened(tensor).tolist()
    return tensor.array.tolist()


def _text(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode()}


def line(members: dict[str, Any]) -> bytes:
    """Return members as a line of JSON. NaN and infinities become null."""
    return orjson.dumps(members, option=orjson.OPT_APPEND_NEWLINE)
