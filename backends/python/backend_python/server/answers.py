"""What a child has told about answers, in terms of core."""

from __future__ import annotations

import json
from typing import Any

import orjson

from backend_python import layout
from core import dtypes
from core.batch import Batch
from core.errors import CoreError, Kind
from core.layout import Place, answers
from core.tensor import Tensor


class Told:
    """The layout of EXECUTED or RESPOND.

    items    answers, or None, False, True as PROTOCOL.md has them
    places   where the tensors of each item are: [] if it has none
    plain    whether each item is an answer without error and parameters, as most are
    lent     tensors on GPUs that the child lends: item, place in it, what was told
    """

    __slots__ = ("items", "lent", "places", "plain")

    def __init__(self, described: bytes, size: int):
        """ProtocolError, or another exception, for what is no layout of a region of `size` bytes."""
        self.items = layout.answers(orjson.loads(described), size)
        found = [item.places if isinstance(item, layout.Answer) else [] for item in self.items]
        self.places = [
            [Place(p.name, dtypes.BY_NUMBER[p.number], p.shape, p.start, p.size) for p in each]
            for each in found
        ]
        self.lent = [
            (i, j, place)
            for i, each in enumerate(found)
            for j, place in enumerate(each)
            if place.lent
        ]
        self.plain = all(
            isinstance(item, layout.Answer) and item.error is None and not item.parameters
            for item in self.items
        )

    def tensors(self, region: Any, offset: int) -> list[list[Tensor]]:
        """The tensors of each item, in a region that begins at `offset`."""
        return answers(self.places, region, offset)


class Remembered:
    """Layouts of late. One thread at a time."""

    def __init__(self) -> None:
        self._known = layout.Memory()

    def of(self, described: bytes, size: int) -> Told:
        """Raises as Told."""
        found: Told | None = self._known.get((described, size))
        if found is None:
            found = self._known.add((described, size), len(described), Told(described, size))
        return found


def give(batch: Batch, i: int, answer: layout.Answer, tensors: list[Tensor], final: bool) -> None:
    """Answer request `i` of a batch."""
    if answer.error is not None:
        code, text = answer.error
        batch.fail(i, CoreError(Kind(code), text), final=final)
        return
    parameters = json.loads(answer.parameters) if answer.parameters else None
    batch.respond(i, tensors, parameters, final=final)
