"""JSON values as TensorFlow Serving writes them ↔ tensors.

A tensor is a value or nested lists. Bytes are an object {"b64": "…"}. NaN and infinities are NaN, Infinity
and -Infinity, which is no JSON, but what TensorFlow Serving reads and writes.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from core import dtypes
from core.errors import CoreError, invalid
from core.tensor import Buffer, Tensor
from frontend_tfserving.types import numbers_of
from frontends.http.native.json_value import count_values

if TYPE_CHECKING:
    from core.config import InputSpec

MOST_VALUES = 20_000_000
_MOST_DIMENSIONS = 64  # of an array of numpy
# Of a float in a list: at least what Python needs for a value while it is read.
BYTES_PER_VALUE = 40

_ENDING = "_bytes"  # outputs of names that end so are bytes, others are text
_KINDS = {
    "f": ("numbers", "iuf"),
    "i": ("whole numbers", "iu"),
    "u": ("whole numbers from 0", "iu"),
    "b": ("true or false", "b"),
}


def read_json(body: Buffer) -> Any:
    """Return the value of a JSON text. Raises CoreError(INVALID) for other texts. Thread-safe."""
    if (count := count_values(body)) > MOST_VALUES:
        raise invalid(f"the request has {count} JSON values; at most {MOST_VALUES} are accepted")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        text = bytes(body)
        if b"NaN" not in text and b"Infinity" not in text:
            raise invalid(f"JSON Parse error: {error}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise invalid(f"JSON Parse error: {error}") from None


def tensor_of(spec: InputSpec, value: Any) -> Tensor:
    """Return the tensor of an input. Its shape is that of the nested lists.

    Raises CoreError(INVALID), which names the input, for lists of unequal lengths, for values that do not fit
    the datatype, and for numbers outside of its range.
    """
    if spec.dtype is dtypes.BYTES:
        array = _texts(spec.name, value)
        return Tensor(spec.name, spec.dtype, array.shape, array=array)
    if spec.dtype is dtypes.BF16:
        raise invalid(f"input '{spec.name}' is BF16, which JSON cannot hold: send it over gRPC")
    array = _numbers(spec, value)
    return Tensor(spec.name, spec.dtype, array.shape, array=array)


def _numbers(spec: InputSpec, value: Any) -> Any:
    expected, kinds = _KINDS[spec.dtype.numpy.kind]
    # numpy would give every element the width of the longest text.
    if not _types(value) <= {int, float, bool, list}:
        raise invalid(f"input '{spec.name}' is {spec.dtype.name}: expected {expected}")
    try:
        found = np.array(value)
        if found.dtype.kind == "f" and spec.dtype is dtypes.UINT64:
            found = _unsigned(value, found)
    except ValueError:  # lists of unequal lengths
        raise invalid(
            f"input '{spec.name}' has lists of unequal lengths, it must be a tensor"
        ) from None
    except OverflowError:
        raise _outside(spec, "a number") from None
    if not found.size:
        return found.astype(spec.dtype.numpy)
    if found.dtype.kind not in kinds:
        raise invalid(f"input '{spec.name}' is {spec.dtype.name}: expected {expected}")
    if spec.dtype.numpy.kind in "iu":
        limits = np.iinfo(spec.dtype.numpy)
        if found.min() < limits.min or found.max() > limits.max:
            outside = next(x for x in found.flat if not limits.min <= x <= limits.max)
            raise _outside(spec, outside)
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(found, spec.dtype.numpy)
    if spec.dtype.numpy.kind == "f" and (np.isinf(array) & ~np.isinf(found)).any():
        raise _outside(spec, "a number")
    return array


def _unsigned(value: Any, found: Any) -> Any:
    """Return the same as UINT64 if all are whole: numpy makes floats of small beside large numbers."""
    flat = [value]
    for _ in found.shape:
        flat = list(chain.from_iterable(flat))
    if not all(type(each) is int and each >= 0 for each in flat):
        return found
    return np.array(flat, np.uint64).reshape(found.shape)


def _types(value: Any) -> set[type]:
    """Return the types on the first level of nested lists that has not only lists."""
    level = [value]
    while level and (types := set(map(type, level))) == {list}:
        level = list(chain.from_iterable(level))
    return types if level else set()


def _outside(spec: InputSpec, found: object) -> CoreError:
    return invalid(f"input '{spec.name}': {found} is out of the range of {spec.dtype.name}")


def _texts(name: str, value: Any) -> Any:
    """Return the elements of nested lists as an array of bytes."""
    shape: list[int] = []
    level = [value]
    while level and all(type(each) is list for each in level):
        lengths = {len(each) for each in level}
        if len(lengths) > 1:
            raise invalid(f"input '{name}' has lists of unequal lengths, it must be a tensor")
        if len(shape) == _MOST_DIMENSIONS:
            raise invalid(
                f"input '{name}' has lists in more than {_MOST_DIMENSIONS} levels, which no tensor has"
            )
        shape.append(lengths.pop())
        level = [element for each in level for element in each]
    array = np.empty(len(level), object)
    array[:] = [_bytes(name, each) for each in level]
    return array.reshape(shape)


def _bytes(name: str, value: Any) -> bytes:
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass")
    if type(value) is dict and value.keys() == {"b64"} and type(value["b64"]) is str:
        try:
            return base64.b64decode(value["b64"], validate=True)
        except binascii.Error as error:
            raise invalid(f"input '{name}' has a wrong \"b64\": {error}") from None
    raise invalid(f'input \'{name}\' is BYTES: expected strings or objects {{"b64": "…"}}')


def values_of(tensor: Tensor) -> Any:
    """Return an output as nested lists, or as an array that orjson writes as such."""
    array = tensor.array
    if tensor.dtype is dtypes.BYTES:
        ends = tensor.name.endswith(_ENDING)
        flat = [_text(each, ends) for each in array.ravel().tolist()]
        found = np.empty(len(flat), object)
        found[:] = flat
        return found.reshape(array.shape).tolist()
    array = np.ascontiguousarray(numbers_of(tensor))
    # Arrays of C's `long long` have 64 bits like int64, but orjson does not write their elements.
    return array.view(np.dtype(array.dtype.str))


def _text(value: bytes, is_bytes: bool) -> Any:
    if not is_bytes:
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass  # JSON has no other way for bytes that are no text
    return {"b64": base64.b64encode(value).decode()}


def write_json(document: Mapping[str, Any]) -> bytes:
    """Return the JSON of a document that may hold arrays. Thread-safe."""
    if _is_finite(document):
        return orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    return json.dumps(document, default=_plain, separators=(",", ":")).encode()


def _is_finite(value: Any) -> bool:
    """Return whether a value has no NaN and no infinity, which orjson would write as null."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    if isinstance(value, np.floating):
        return bool(np.isfinite(value))
    if isinstance(value, float):
        return value - value == 0
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return True


def _plain(value: Any) -> Any:
    return value.tolist()
