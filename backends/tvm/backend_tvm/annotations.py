"""Parse the types of Relax: R.Tensor((n, 3), dtype="float32") and tuples of them.

executable ─► [annotations] ─► reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MOST_LETTERS, _MOST_TUPLES, _MOST_DIGITS = 1 << 16, 16, 18
_TENSOR = "R.Tensor("
_DTYPE = re.compile(r'dtype="(?P<dtype>\w+)"(?:, ndim=(?P<ndim>\d\d?))?(?=[,)])')
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
    text = _bounded(text)
    dims, about = "", text.removeprefix(_TENSOR)
    shaped = about.startswith("(")
    if shaped:
        # The last one: a dim may have parentheses too, such as T.int64(3).
        dims, between, about = about[1:].rpartition("), dtype=")
        about = f"dtype={about}" if between else ""
    found = _DTYPE.match(about)
    if not (found and text.startswith(_TENSOR) and text.endswith(")")) or "vdevice" in text:
        raise ValueError(f"{_shown(text)}, which is no tensor with a datatype on one device")
    if shaped:
        return TensorType(found["dtype"], tuple(_dim(each) for each in _fields(dims)))
    if found["ndim"] is None:
        raise ValueError(f"{_shown(text)}, whose number of dimensions is not known")
    return TensorType(found["dtype"], ("?",) * int(found["ndim"]))


def tensor_types(text: str, depth: int = 0) -> list[TensorType]:
    """Return the tensors of a type, those in tuples in order. Raises ValueError as tensor_type does.

    depth   number of tuples around the type
    """
    text = _bounded(text)
    found = _TUPLE.fullmatch(text)
    if found is None:
        return [tensor_type(text)]
    if depth == _MOST_TUPLES:
        raise ValueError(
            f"{_shown(text)} in {depth} tuples, at most {_MOST_TUPLES - 1} are expected"
        )
    return [
        each for part in _fields(found["fields"] or "") for each in tensor_types(part, depth + 1)
    ]


def _bounded(text: str) -> str:
    """Return the text without spaces around it. Raises ValueError if it is too long for a type."""
    if len(text) > _MOST_LETTERS:
        raise ValueError(f"a type of {len(text)} letters, at most {_MOST_LETTERS} are expected")
    return text.strip()


def _shown(text: str) -> str:
    """Return the text for an error."""
    return text if len(text) <= 200 else f"{text[:200]}…"


def _fields(text: str) -> list[str]:
    """Return the parts between the commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    return [each.strip() for each in [*parts, text[start:]] if each.strip()]


def _dim(text: str) -> str:
    """Return a dimension; a number without its type. Raises ValueError for a number that no array has."""
    found = _NUMBER.sub(r"\1", text)
    if found.isdecimal() and len(found) > _MOST_DIGITS:
        raise ValueError(f"a tensor with the dimension {_shown(found)}, which is too large")
    return found
