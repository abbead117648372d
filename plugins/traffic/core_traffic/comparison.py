"""Comparison: the answers of two versions to one request, compared. Pure; any thread.

Shadow ─► [Comparison] ─► None, or the difference
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.dtypes import BF16, BYTES, FP16, FP32, FP64, DataType
from core.errors import CoreError
from core.tensor import Tensor

Answer = Sequence[Tensor] | CoreError  # one response

FLOATS = (FP16, FP32, FP64, BF16)
_AT_ONCE = 1 << 20  # elements that are compared at once, which bounds the memory
_MOST_TEXT = 60  # characters of a value in a difference


@dataclass(frozen=True)
class Tolerance:
    """How elements of one output may differ.

    atol, rtol   floats a and b are equal if |a - b| <= atol + rtol * |a|, with a of the version that the
                 caller got; other datatypes must be equal
    by_class     compare only the place of the largest element along the last axis
    """

    atol: float = 1e-8
    rtol: float = 1e-5
    by_class: bool = False


@dataclass(frozen=True)
class Comparison:
    """What is compared.

    common    tolerance of outputs that have none of their own
    outputs   name → tolerance, of the outputs to compare; None for all
    """

    common: Tolerance = field(default_factory=Tolerance)
    outputs: Mapping[str, Tolerance] | None = None

    def of_answers(
        self, mine: Sequence[Answer], theirs: Sequence[Answer], counts: tuple[int, int]
    ) -> dict[str, Any] | None:
        """Return the first difference of two answers as JSON; None if they are equal.

        mine, theirs   responses of the version that the caller got, and of the shadow: the first of each
        counts         how many there were
        """
        for at, (one, other) in enumerate(zip(mine, theirs, strict=False)):
            if (found := self._of_responses(one, other)) is not None:
                return {"response": at, **found} if max(counts) > 1 else found
        if counts[0] != counts[1]:
            return {"what": "responses", "caller": counts[0], "shadow": counts[1]}
        return None

    def _of_responses(self, mine: Answer, theirs: Answer) -> dict[str, Any] | None:
        if isinstance(mine, CoreError) or isinstance(theirs, CoreError):
            if (
                isinstance(mine, CoreError)
                and isinstance(theirs, CoreError)
                and mine.kind is theirs.kind
            ):
                return None
            return {"what": "error", "caller": _text(mine), "shadow": _text(theirs)}
        others = {tensor.name: tensor for tensor in theirs}
        for tensor in mine:
            tolerance = self._tolerance(tensor.name)
            if tolerance is None:
                continue
            if (other := others.get(tensor.name)) is None:
                return {"what": "outputs", "output": tensor.name, "shadow": "it is not there"}
            if (found := _of_tensors(tensor, other, tolerance)) is not None:
                return {**found, "output": tensor.name}
        return None

    def _tolerance(self, output: str) -> Tolerance | None:
        return self.common if self.outputs is None else self.outputs.get(output)


def _of_tensors(mine: Tensor, theirs: Tensor, tolerance: Tolerance) -> dict[str, Any] | None:
    if mine.dtype is not theirs.dtype:
        return {"what": "datatype", "caller": str(mine.dtype), "shadow": str(theirs.dtype)}
    if mine.shape != theirs.shape:
        return {"what": "shape", "caller": list(mine.shape), "shadow": list(theirs.shape)}
    one, other = mine.array, theirs.array
    if tolerance.by_class and mine.dtype is not BYTES and one.ndim and one.shape[-1]:
        if mine.dtype is BF16:
            one, other = _floats(one, BF16), _floats(other, BF16)
        one, other = one.argmax(axis=-1), other.argmax(axis=-1)
        found = _largest(one.reshape(-1), other.reshape(-1), None, Tolerance(0, 0))
        what = "class"
    else:
        found = _largest(one.reshape(-1), other.reshape(-1), mine.dtype, tolerance)
        what = "value"
    if found is None:
        return None
    index = [int(each) for each in np.unravel_index(found.pop("at"), one.shape)]
    return {"what": what, "index": index, **found, "elements": one.size}


def _largest(
    mine: np.ndarray, theirs: np.ndarray, dtype: DataType | None, tolerance: Tolerance
) -> dict[str, Any] | None:
    """Return the largest difference of two flat arrays, with its place and values; None if all are equal.

    dtype   None for an array of numpy's own integers
    """
    differing, largest, place = 0, -1.0, 0
    for first, wrong, distance in _parts(mine, theirs, dtype, tolerance):
        differing += int(wrong.sum())
        distance = np.where(wrong, distance, -1.0)
        at = int(distance.argmax())
        if distance[at] > largest:
            largest, place = float(distance[at]), first + at
    if not differing:
        return None
    values = [_value(each[place], dtype) for each in (mine, theirs)]
    return {
        "at": place,
        "caller": values[0],
        "shadow": values[1],
        # BYTES have no distance; that of NaN or infinity to a number is infinite, which JSON does not have.
        "difference": largest if dtype is not BYTES and np.isfinite(largest) else None,
        "differing": differing,
    }


def _parts(
    mine: np.ndarray, theirs: np.ndarray, dtype: DataType | None, tolerance: Tolerance
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield (number of its first element, mask of what differs, distances) for the parts that differ."""
    for first in range(0, mine.size, _AT_ONCE):
        one, other = mine[first : first + _AT_ONCE], theirs[first : first + _AT_ONCE]
        if np.array_equal(one, other):
            continue
        if dtype is BYTES:
            wrong = np.asarray(one != other, bool)
            yield first, wrong, np.zeros(len(one))
            continue
        wrong = np.asarray(one != other, bool)
        one, other = _floats(one, dtype), _floats(other, dtype)
        with np.errstate(all="ignore"):
            distance = np.abs(one - other)
            if dtype in FLOATS:
                both_nan = np.isnan(one) & np.isnan(other)
                wrong = ~(
                    (distance <= tolerance.atol + tolerance.rtol * np.abs(one)) | (one == other)
                )
                wrong &= ~both_nan
                # Infinity is within no tolerance of another number, and NaN of nothing.
                wrong |= (np.isinf(one) | np.isinf(other)) & (one != other)
                distance = np.where(np.isnan(distance), np.inf, distance)
        if wrong.any():
            yield first, wrong, distance


def _floats(array: np.ndarray, dtype: DataType | None) -> np.ndarray:
    """Return numbers as float64; BF16 from its bit patterns."""
    if dtype is BF16:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def _value(element: Any, dtype: DataType | None) -> Any:
    """Return an element as a JSON value; NaN and infinity as text."""
    if dtype is BYTES:
        text = bytes(element).decode(errors="replace")
        return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
    if dtype is BF16:
        element = _floats(np.asarray([element]), BF16)[0]
    value = element.item()
    return value if not isinstance(value, float) or np.isfinite(value) else str(value)


def _text(answer: Answer) -> str:
    return answer.message[:500] if isinstance(answer, CoreError) else "it has answered"
