"""Content types of tensors in JSON, as MLServer has them: `parameters.content_type` of an input or an output.

base64     elements are base64; with a datatype of numbers they are the bytes of the tensor
datetime   elements are times in ISO 8601; with INT64 they become nanoseconds since 1970, in UTC

Data frames (pd) are in data_frame.py. Others (np, str) say what JSON tensors are anyway, and change nothing.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.errors import CoreError, invalid
from core.native import strings
from core.tensor import Tensor
from frontends.http.codec.base64_data import decoded
from frontends.http.codec.json_tensor import element_count, read_tensor

BASE64 = "base64"
DATETIME = "datetime"
KEY = "content_type"

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def read_typed(
    name: str,
    dtype: DataType,
    shape: tuple[int, ...],
    data: Any,
    content_type: Any,
    most_bytes: int,
) -> Tensor:
    """Return the tensor of a JSON input with a content type.

    data           as in `read_tensor`; a text stands for a list of one
    content_type   "base64": elements of BYTES are decoded if they are base64; for other datatypes a single
                   text has the bytes of the tensor, whose number is not compared with the shape.
                   "datetime": elements of BYTES must be times, those of INT64 become nanoseconds. Any other
                   value, and other datatypes with "datetime": as `read_tensor`
    most_bytes     limit of the size of the tensor, and of its texts, in bytes
    Raises CoreError(INVALID) as `read_tensor`, for a text that is no time, and for bytes that are no base64.
    """
    if type(data) is str:
        data = [data]
    if content_type == BASE64:
        return _of_base64(name, dtype, shape, data, most_bytes)
    if content_type == DATETIME and dtype in (dtypes.BYTES, dtypes.INT64):
        return _of_times(name, dtype, shape, data, most_bytes)
    return read_tensor(name, dtype, shape, data, most_bytes)


def _texts(name: str, shape: tuple[int, ...], data: Any, most_bytes: int) -> list[bytes]:
    tensor = read_tensor(name, dtypes.BYTES, shape, data, most_bytes)
    return strings.decode(tensor.raw, element_count(name, shape)).tolist()  # type: ignore[no-any-return]


# base64 ------------------------------------------------------------------------------


def _of_base64(
    name: str, dtype: DataType, shape: tuple[int, ...], data: Any, most_bytes: int
) -> Tensor:
    if dtype is dtypes.BYTES:
        elements = [decoded(each) for each in _texts(name, shape, data, most_bytes)]
        packed = np.empty(len(elements), object)
        packed[:] = elements
        return Tensor(name, dtype, shape, raw=strings.encode(packed))
    (text,) = _texts(name, (1,), data, most_bytes)
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise _wrong(
            name, f"no base64 ({error})", "the bytes of the tensor, little endian"
        ) from None
    return Tensor(name, dtype, shape, raw=raw)  # admit checks its size


# datetime ----------------------------------------------------------------------------


def _of_times(
    name: str, dtype: DataType, shape: tuple[int, ...], data: Any, most_bytes: int
) -> Tensor:
    texts = _texts(name, shape, data, most_bytes)
    times = [_time(name, text) for text in texts]
    if dtype is dtypes.BYTES:
        packed = np.empty(len(texts), object)
        packed[:] = texts
        return Tensor(name, dtype, shape, raw=strings.encode(packed))
    try:
        found = np.array([_nanoseconds(time) for time in times], np.dtype("<i8"))
    except OverflowError:
        raise _wrong(name, "a time beyond 64 bits of nanoseconds", "1677 to 2262") from None
    return Tensor(name, dtype, shape, raw=found.tobytes())


def _time(name: str, text: bytes) -> datetime:
    try:
        # Older versions of Python do not read the Z.
        return datetime.fromisoformat(text.decode("ascii").replace("Z", "+00:00"))
    except ValueError:
        found = repr(text[:40].decode("utf-8", "replace"))
        raise _wrong(name, found, "a time in ISO 8601, such as '2026-01-31T12:00:00'") from None


def _nanoseconds(time: datetime) -> int:
    utc = time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)
    return (utc - _EPOCH) // _MICROSECOND * 1000


def _wrong(name: str, found: str, expected: str) -> CoreError:
    return invalid(f"Unable to parse 'data': input '{name}' has {found}; expected {expected}")
