"""Values and arrays → tensors that fit an input of the model."""

from __future__ import annotations

import base64
import binascii
from itertools import chain
from typing import Any

import numpy as np

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError, invalid
from core.tensor import Tensor
from frontends.http.codec.json_tensor import filled

CHOSEN_BY = "--input-name"
_MOST_DIMS = 64  # of an array of numpy


def only_input(signature: Signature, name: str, chosen_by: str = CHOSEN_BY) -> InputSpec:
    """Return the input that files without names feed: `name`, or the only one that the model needs.

    chosen_by   how a person names one
    Raises CoreError(INVALID) for an unknown name, and without one for a model with several inputs.
    """
    known = ", ".join(signature.inputs)
    if name:
        if name not in signature.inputs:
            raise invalid(f"model '{signature.name}' has no input '{name}'; it has {known}")
        return signature.inputs[name]
    needed = [each for each in signature.inputs.values() if not each.optional]
    found = needed or list(signature.inputs.values())
    if len(found) != 1:
        raise invalid(
            f"model '{signature.name}' has several inputs: {known}; choose one with {chosen_by}, or use "
            "JSON lines or .npz, which name them"
        )
    return found[0]


def is_batched(spec: InputSpec, signature: Signature) -> bool:
    return signature.max_batch_size > 0 and not spec.shape_tensor


def tensor_of_value(spec: InputSpec, batched: bool, value: Any) -> Tensor:
    """Return the tensor of a JSON value: a number, a text, {"b64": text}, or nested lists of these."""
    if spec.dtype is dtypes.BYTES:
        array = np.array(_texts(value), dtype=object)
        if any(isinstance(each, list) for each in array.flat):
            raise _wrong(spec, "lists of different lengths")
    elif _has_texts(value):  # numpy would give every element the width of the longest text
        raise _wrong(spec, "other elements than numbers")
    else:
        try:
            array = np.array(value)
        except ValueError:
            raise _wrong(spec, "lists of different lengths") from None
        if array.dtype == object or array.dtype.kind not in "biuf":
            raise _wrong(spec, "other elements than numbers")
    return fitted(spec, batched, array)


def fitted(spec: InputSpec, batched: bool, array: np.ndarray) -> Tensor:
    """Return an array as a tensor of an input.

    Adds the dimension of the batch if it is missing. A flat array of the right size takes the shape of the
    input. Raises CoreError(INVALID) for other shapes, and for a datatype that would lose something.
    """
    dims = (-1, *spec.dims) if batched else spec.dims
    if spec.dtype is dtypes.BYTES:
        array = _as_bytes(spec, array)
    elif array.dtype != spec.dtype.numpy:
        array = _converted(spec, array)
    if _fits(array.shape, dims):
        shape: tuple[int, ...] | None = array.shape
    elif batched and _fits(array.shape, spec.dims):
        shape = (1, *array.shape)
    elif array.ndim <= 1:
        shape = filled((1, *spec.dims) if batched else dims, array.size)
    else:
        shape = None
    if shape is None:
        raise _wrong(spec, f"shape {list(array.shape)}, expected {list(dims)}")
    array = np.ascontiguousarray(array).reshape(shape)
    return Tensor.of(spec.name, array, spec.dtype if spec.dtype is dtypes.BF16 else None)


def tensor_of_file(spec: InputSpec, batched: bool, data: bytes) -> Tensor:
    """Return the bytes of a file as one element of BYTES, or as the elements of UINT8."""
    if spec.dtype is dtypes.BYTES:
        return fitted(spec, batched, np.array([data], dtype=object))
    if spec.dtype is dtypes.UINT8:
        return fitted(spec, batched, np.frombuffer(data, np.uint8))
    raise _wrong(spec, "a file, which only an input of BYTES or UINT8 takes")


def _fits(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return len(shape) == len(dims) and all(
        dim in (-1, size) for size, dim in zip(shape, dims, strict=True)
    )


def _converted(spec: InputSpec, array: np.ndarray) -> np.ndarray:
    """Return the array with the datatype of an input: numbers change their type if their values stay."""
    wanted = spec.dtype.numpy
    if spec.dtype is dtypes.BF16 and array.dtype.name == "bfloat16":
        return array.view(np.uint16)
    if array.dtype.kind not in "biuf":
        raise _wrong(spec, f"elements of {array.dtype}")
    if spec.dtype is dtypes.BF16:
        bits = array.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    if array.dtype.kind == "f" and wanted.kind in "iu":
        raise _wrong(spec, f"numbers of {array.dtype}, which are not whole")
    if wanted.kind in "iu" and array.size:
        bounds = np.iinfo(wanted)
        if array.min() < bounds.min or array.max() > bounds.max:
            raise _wrong(spec, "a number that is out of its range")
    return array.astype(wanted)


def _as_bytes(spec: InputSpec, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "SUO":
        raise _wrong(spec, f"elements of {array.dtype}, expected texts")
    try:
        found = array.astype(object)
        if array.dtype.kind == "U":
            for place, text in enumerate(found.flat):
                found.flat[place] = text.encode()
    except (ValueError, SystemError):  # half of a surrogate pair, a number that is no character
        raise _wrong(spec, "texts with characters that Unicode does not have") from None
    return found


def _has_texts(value: Any) -> bool:
    """Return whether the first level of nested lists that has not only lists has a text."""
    level = [value]
    while level and (types := set(map(type, level))) == {list}:
        level = list(chain.from_iterable(level))
    return bool(level) and str in types


def _texts(value: Any, depth: int = 0) -> Any:
    """Return a value with {"b64": text} decoded."""
    if isinstance(value, list):
        if depth == _MOST_DIMS:
            raise invalid(f"lists are nested more than {_MOST_DIMS} deep, which no shape is")
        return [_texts(each, depth + 1) for each in value]
    if isinstance(value, dict) and value.keys() == {"b64"}:
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise invalid("'b64' has a text that is no base64") from None
    if not isinstance(value, str):
        raise invalid(f'an element is {value!r:.40}; expected a text or {{"b64": text}}')
    return value


def _wrong(spec: InputSpec, what: str) -> CoreError:
    return invalid(f"input '{spec.name}' of {spec.dtype.name} got {what}")
