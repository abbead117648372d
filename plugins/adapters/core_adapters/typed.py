"""Types of Python functions: what they say of inputs and outputs, and the values that they stand for.

int, float, bool, str, bytes       one element
list[T], list[list[T]] of these    one dimension for each list
numpy.ndarray, NDArray[dtype]      rows and columns; Annotated[ndarray, ("FP32", [3, -1])] for other shapes
dict, Any and others               one text that holds JSON
"""

from __future__ import annotations

import collections.abc
import dataclasses
import json
from collections.abc import Mapping
from typing import Annotated, Any, Callable, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from backend_python.api.datatypes import triton_string_to_numpy
from backend_python.api.errors import TritonModelException

from core_adapters.fitting import Array, data_type_of

_SCALARS: dict[Any, str] = {
    bool: "TYPE_BOOL",
    int: "TYPE_INT64",
    float: "TYPE_FP64",
    str: "TYPE_STRING",
    bytes: "TYPE_STRING",
}
_LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Iterable)
_STREAMS = (collections.abc.Iterator, collections.abc.Iterable, collections.abc.Generator)
_NONE = type(None)


class Value(NamedTuple):
    """What a type says of a tensor.

    read   array of a request → value for the function
    """

    data_type: str
    dims: list[int]
    read: Callable[[Array], Any]


def value_of(hint: Any) -> Value:
    """Return the tensor that the type of a parameter or of a result describes.

    Raises TritonModelException for a note of Annotated that is no datatype and shape.
    """
    hint = _without_none(hint)
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        specs = [each for each in notes if isinstance(each, tuple) and len(each) == 2]
        return _specified(*specs[0]) if specs else value_of(inner)
    if hint in _SCALARS:
        return Value(_SCALARS[hint], [1], _reader(hint, 0))
    if hint is np.ndarray or get_origin(hint) is np.ndarray:
        return Value(_dtype_of(hint), [-1, -1], _unchanged)
    element, depth = _element(hint)
    if depth and element in _SCALARS:
        return Value(_SCALARS[element], [-1] * depth, _reader(element, depth))
    return Value("TYPE_STRING", [1], lambda array: json.loads(_text(array.reshape(-1)[0])))


def outputs_of(hint: Any) -> dict[str, Value]:
    """Return name → Value of the outputs that the type of a result describes.

    A dataclass, a named tuple or a TypedDict has its fields as outputs, tuple[A, B] has y0 and y1, and any
    other type has `y`. An iterator or iterable has the outputs of its elements.
    """
    if get_origin(hint) in _STREAMS:
        return outputs_of(get_args(hint)[0])
    if isinstance(hint, type) and (
        dataclasses.is_dataclass(hint) or hasattr(hint, "_fields") or hasattr(hint, "__total__")
    ):
        return {
            name: value_of(each) for name, each in get_type_hints(hint, None, None, True).items()
        }
    parts = get_args(hint) if get_origin(hint) is tuple else ()
    if parts and Ellipsis not in parts:
        return {f"y{i}": value_of(each) for i, each in enumerate(parts)}
    return {"y": value_of(hint)}


def by_name(result: Any, names: list[str]) -> dict[str, Any]:
    """Return name → value of the outputs in a result. Raises TritonModelException if it has other outputs."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        result = vars(result)
    elif hasattr(result, "_asdict"):
        result = result._asdict()
    if isinstance(result, Mapping) and set(names) <= set(result):
        return {name: result[name] for name in names}
    if len(names) == 1:
        return {names[0]: result}
    if isinstance(result, (tuple, list)) and len(result) == len(names):
        return dict(zip(names, result))
    raise TritonModelException(
        f"the function returned a {type(result).__name__} for the outputs {', '.join(names)}; expected a "
        "dict with their names, or a tuple"
    )


def array_of(value: Any, data_type: str) -> Any:
    """Return a result in a form that becomes an array.

    Arrays, and values of other datatypes, stay as they are. For TYPE_STRING, texts, bytes and lists of them
    become an array of objects, and any other value becomes one text of JSON.
    """
    if data_type != "TYPE_STRING" or isinstance(value, np.ndarray):
        return value
    if isinstance(value, (str, bytes)):
        return np.array([value], np.object_)
    if isinstance(value, (list, tuple)) and _holds_texts(value):
        return np.array(value, np.object_)
    return np.array([json.dumps(value, default=_plain)], np.object_)


def _holds_texts(values: Any) -> bool:
    return all(
        isinstance(each, (str, bytes)) or (isinstance(each, (list, tuple)) and _holds_texts(each))
        for each in values
    )


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: Python's numbers and lists for those of numpy, else the text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _without_none(hint: Any) -> Any:
    """Return T for Optional[T] and T | None, Any for a union of several types, else the type itself."""
    if get_origin(hint) is Union or type(hint).__name__ == "UnionType":
        others = [each for each in get_args(hint) if each is not _NONE]
        return others[0] if len(others) == 1 else Any
    return hint


def _specified(dtype: Any, shape: Any) -> Value:
    """Return the tensor that Annotated[…, (dtype, shape)] describes.

    dtype   name of a datatype with or without TYPE_, or a dtype of numpy
    Raises TritonModelException for an unknown datatype or a shape that is not of whole numbers.
    """
    name = dtype if isinstance(dtype, str) else data_type_of(np.empty(0, dtype))
    data_type = name if name.startswith("TYPE_") else f"TYPE_{name}".replace("BYTES", "STRING")
    try:
        triton_string_to_numpy(data_type)
        return Value(data_type, [int(size) for size in shape], _unchanged)
    except (KeyError, TypeError, ValueError, TritonModelException):
        raise TritonModelException(
            f"the type has the note {(dtype, shape)!r}, expected a datatype and a shape, such as "
            '("FP32", [-1, 16])'
        ) from None


def _dtype_of(hint: Any) -> str:
    """Return the datatype of NDArray[dtype]; TYPE_FP64 if the type names no dtype."""
    for part in get_args(hint):
        if get_origin(part) is np.dtype and isinstance(get_args(part)[0], type):
            return data_type_of(np.empty(0, get_args(part)[0]))
    return "TYPE_FP64"


def _element(hint: Any) -> tuple[Any, int]:
    """Return the element type of nested lists, and how many lists surround it: int, 2 for list[list[int]].

    Returns Any, 0 if a list does not have exactly one element type.
    """
    depth = 0
    while get_origin(hint) in _LISTS:
        parts = [each for each in get_args(hint) if each is not Ellipsis]
        if len(parts) != 1:
            return Any, 0
        hint, depth = _without_none(parts[0]), depth + 1
    return hint, depth


def _reader(kind: Any, depth: int) -> Callable[[Array], Any]:
    """Return the function that makes a value (the first element), or nested lists of values, of an array.

    kind    type of a value, a key of _SCALARS
    depth   0 for a value; otherwise the result has the array's dimensions
    """
    convert = {str: _text, bytes: _bytes}.get(kind, kind)

    def nested(values: Any) -> Any:
        return list(map(nested, values)) if isinstance(values, list) else convert(values)

    return lambda array: nested(array.tolist()) if depth else convert(array.reshape(-1)[0])


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _unchanged(array: Array) -> Array:
    return array
