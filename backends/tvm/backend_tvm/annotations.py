"""Parse the types of Relax: R.Tensor((n, 3), dtype="float32") and tuples of them.

executable ─► [annotations] ─► reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TENSOR = re.compile(
    r'R\.Tensor\((?:\((?P<dims>.*)\), )?dtype="(?P<dtype>\w+)"(?:, ndim=(?P<ndim>-?\d+))?.*\)',
    re.DOTALL,
)
_TUPLE = re.compile(r"[RT]\.Tuple(?:\((?P<fields>.*)\))?", re.DOTALL)
_NUMBER = re.compile(r"T\.u?int\d+\((\d+)\)")


@dataclass(frozen=True)
class TensorType:
    """Datatype and shape of a tensor.

    dtype   TVM's name
    dims    as written: ("n", "3"), "?" for an unknown one
    """

    dtype: str
    dims: tuple[str, ...]


def tensor_type(text: str) -> TensorType:
    """Return the type. Raises ValueError if it is not a tensor whose number of dimensions is known."""
    found = _TENSOR.fullmatch(text.strip())
    if found is None or "vdevice" in text:
        raise ValueError(f"{text}, which is no tensor with a datatype on one device")
    if found["dims"] is not None:
        return TensorType(found["dtype"], tuple(_dim(each) for each in _fields(found["dims"])))
    if found["ndim"] is None or int(found["ndim"]) < 0:
        raise ValueError(f"{text}, whose number of dimensions is not known")
    return TensorType(found["dtype"], ("?",) * int(found["ndim"]))


def tensor_types(text: str) -> list[TensorType]:
    """Return the tensors of a type, those in tuples in order. Raises ValueError as tensor_type does."""
    found = _TUPLE.fullmatch(text.strip())
    if found is None:
        return [tensor_type(text)]
    return [each for part in _fields(found["fields"] or "") for each in tensor_types(part)]


def _fields(text: str) -> list[str]:
    """Return the parts between the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [each.strip() for each in parts if each.strip()]


def _dim(text: str) -> str:
    """Return a dimension; a number without its type."""
    return _NUMBER.sub(r"\1", text)
