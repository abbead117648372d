"""Sketches: what is known of each tensor of each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from core_capture.drift.classes import ClassSketch
from core_capture.drift.numbers import NumberSketch
from core_capture.records.record import Record
from core_capture.tensors.forms import answers_of, requests_of
from core_capture.tensors.message import InferMessage, TensorValue, Unreadable

MOST_TENSORS = 1000
MOST_ELEMENTS = 4096  # of one tensor of a message; of a larger one, so many are chosen at random


class Key(NamedTuple):
    """A tensor. `side` is "input" or "output"."""

    model: str
    version: str
    side: str
    tensor: str


@dataclass
class TensorSketch:
    """What is known of a tensor.

    numbers   of its elements; for strings, of their lengths
    classes   values of whole numbers, booleans and strings; or the index of the largest element of each row
    """

    datatype: str
    numbers: NumberSketch = field(default_factory=NumberSketch)
    classes: ClassSketch = field(default_factory=ClassSketch)

    def merge(self, other: TensorSketch) -> None:
        self.numbers.merge(other.numbers)
        self.classes.merge(other.classes)


class Sketches:
    """The sketches of the tensors in records. Not thread-safe.

    predicted   patterns of names of tensors of scores: the class of a row is the index of its largest element
    missed      tensors without a sketch, because there are MOST_TENSORS already
    """

    def __init__(self, predicted: Sequence[str] = ()):
        self.found: dict[Key, TensorSketch] = {}
        self.missed = 0
        self._predicted = tuple(predicted)
        self._random = np.random.default_rng()

    def add(self, record: Record) -> None:
        """Add the tensors of a record. Calls that failed, and those of other protocols, have none."""
        if record.failed or record.cut:
            return
        model, version = record.model, record.version
        try:
            for request in requests_of(record):
                self._of_message(model, version, "input", request, record.redacted)
            if record.has_answer:
                messages = [each.data for each in record.sent]
                for answer in answers_of(record.path, record.answer_fields, messages):
                    self._of_message(model, version, "output", answer, record.redacted)
        except Unreadable:
            pass

    def merge(self, other: Sketches) -> None:
        """Add what another object knows."""
        for key, sketch in other.found.items():
            own = self._of(key, sketch.datatype)
            if own is not None:
                own.merge(sketch)
        self.missed += other.missed

    def _of(self, key: Key, datatype: str) -> TensorSketch | None:
        if (found := self.found.get(key)) is None:
            if len(self.found) >= MOST_TENSORS:
                self.missed += 1
                return None
            found = self.found[key] = TensorSketch(datatype)
        return found if found.datatype == datatype else None

    def _of_message(
        self, model: str, version: str, side: str, message: InferMessage, redacted: Sequence[str]
    ) -> None:
        for tensor in message.tensors:
            if tensor.name in redacted or tensor.raw is None:
                continue
            key = Key(message.model or model, version, side, tensor.name)
            if (sketch := self._of(key, tensor.datatype)) is not None:
                self._add(sketch, tensor)

    def _add(self, sketch: TensorSketch, tensor: TensorValue) -> None:
        array = tensor.array()
        if self._has_scores(tensor.name, array):
            rows = array.reshape(-1, array.shape[-1])[:MOST_ELEMENTS]
            sketch.classes.add(map(str, rows.argmax(1).tolist()))
        flat = self._some(array.ravel())
        if tensor.datatype == "BYTES":
            sketch.numbers.add(np.array([len(each) for each in flat], np.float64))
            sketch.classes.add(each.decode("utf-8", "replace") for each in flat)
            return
        sketch.numbers.add(flat)
        if flat.dtype.kind in "iub" and not sketch.classes.open:
            sketch.classes.add(map(str, flat.tolist()))

    def _has_scores(self, name: str, array: np.ndarray[Any, Any]) -> bool:
        """Return whether a tensor has a score for each class."""
        if not any(fnmatchcase(name, each) for each in self._predicted):
            return False
        return array.ndim > 0 and array.shape[-1] > 1 and array.dtype.kind == "f"

    def _some(self, flat: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if flat.size <= MOST_ELEMENTS:
            return flat
        return flat[self._random.integers(0, flat.size, MOST_ELEMENTS)]
