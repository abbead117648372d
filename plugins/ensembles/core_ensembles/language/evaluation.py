"""Evaluation of an expression over tensors.

The value of an expression is a number, a text, a truth value or an array of these, or None if it depends on
a tensor that does not exist. A comparison with None is false, and so are any(None) and all(None).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from core.dtypes import BF16
from core.tensor import Tensor
from core_ensembles.language.nodes import Binary, Call, Literal, Logical, Name, Node, Unary
from core_ensembles.language.parser import COMPARISONS

Value = Any
"""A value of Python or numpy, or None."""

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_OF_ANY: Mapping[str, Callable[[Any], Any]] = {
    "any": lambda value: bool(np.any(value)),
    "all": lambda value: bool(np.all(value)),
    "count": lambda value: int(np.count_nonzero(value)),
    "sum": lambda value: np.sum(value, dtype=np.float64),
    "abs": lambda value: np.abs(_exact(value)),
}
_OF_SOME: Mapping[str, Callable[[Any], Any]] = {
    "min": np.min,
    "max": np.max,
    "mean": lambda value: np.mean(value, dtype=np.float64),
}
"""Functions that have no value for no element."""


def evaluate(node: Node, tensors: Mapping[str, Tensor]) -> Value:
    """Return the value of an expression. Raises ValueError for shapes that do not fit each other.

    tensors   by name; one that is not there does not exist
    Any thread; reads the tensors only.
    """
    with np.errstate(all="ignore"):  # a division by zero is infinite, as for floats in models
        return _value(node, tensors)


def _value(node: Node, tensors: Mapping[str, Tensor]) -> Value:
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Name):
        tensor = tensors.get(node.name)
        return None if tensor is None else _array(tensor)
    if isinstance(node, Unary):
        value = _value(node.operand, tensors)
        if node.operator == "not":
            return np.logical_not(False if value is None else value)
        return None if value is None else -_exact(value)
    if isinstance(node, Binary):
        return _binary(node, tensors)
    if isinstance(node, Logical):
        return _logical(node, tensors)
    return _call(node, tensors)


def _binary(node: Binary, tensors: Mapping[str, Tensor]) -> Value:
    left, right = _value(node.left, tensors), _value(node.right, tensors)
    compares = node.operator in COMPARISONS
    if left is None or right is None:
        return False if compares else None
    _check_shapes(left, right)
    if not compares:
        left, right = _exact(left), _exact(right)
    return _OPERATORS[node.operator](left, right)


def _logical(node: Logical, tensors: Mapping[str, Tensor]) -> Value:
    join = np.logical_and if node.operator == "and" else np.logical_or
    found: Value = node.operator == "and"
    for operand in node.operands:
        value = _value(operand, tensors)
        value = False if value is None else value
        _check_shapes(found, value)
        found = join(found, value)
    return found


def _check_shapes(left: Value, right: Value) -> None:
    """Raise ValueError unless one shape fits into the other. A row and a column would multiply elements."""
    one, other = np.shape(left), np.shape(right)
    if one == other:
        return
    try:
        fits = math.prod(np.broadcast_shapes(one, other)) <= max(
            math.prod(one), math.prod(other), 1
        )
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"the shapes {list(one)} and {list(other)} do not fit each other")


def _call(node: Call, tensors: Mapping[str, Tensor]) -> Value:
    function = node.function
    if isinstance(node.argument, Name) and function in ("present", "rows", "size"):
        tensor = tensors.get(node.argument.name)
        if function == "present":
            return tensor is not None
        if tensor is None:
            return None
        return tensor.count if function == "size" else tensor.shape[0] if tensor.shape else 1
    value = _value(node.argument, tensors)
    if value is None:
        return False if function in ("any", "all") else None
    if function in _OF_ANY:
        return _OF_ANY[function](value)
    return _OF_SOME[function](value) if np.size(value) else None


def _array(tensor: Tensor) -> np.ndarray:
    array = tensor.array
    if tensor.dtype is BF16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def _exact(value: Value) -> Any:
    """Return numbers as FP64: integers of a datatype would overflow."""
    return np.asarray(value, np.float64)[()]
