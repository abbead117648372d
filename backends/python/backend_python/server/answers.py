"""Decode a child's answers into objects of core."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from backend_python import layout
from backend_python.items import Item, Laid
from backend_python.server.byte_layout import TensorSlice, tensors_of
from core import dtypes
from core.batch import Batch
from core.errors import CoreError, Kind
from core.tensor import Tensor


class AnswerLayout:
    """The decoded layout of an EXECUTED or RESPOND message.

    items    answers, or None, False, True with the meanings in PROTOCOL.md
    plain    True if each item is an answer without error and parameters
    lent     GPU tensors that the child lends: index of the item, index of the tensor in it, its layout.Place
    """

    __slots__ = ("_laid", "lent", "plain")

    def __init__(self, laid: Laid):
        self._laid = laid
        self.plain = laid.plain
        self.lent: Sequence[tuple[int, int, layout.Place]] = ()
        if laid.lends:
            self.lent = [
                (i, j, place)
                for i, item in enumerate(self.items)
                if isinstance(item, layout.Answer)
                for j, place in enumerate(item.places)
                if place.lent
            ]

    @property
    def items(self) -> list[layout.Answer | bool | None]:
        return [item.value for item in self._laid.items]

    def tensors(self, region: Any, offset: int) -> list[list[Tensor]]:
        """Return the tensors of each item, in a region that begins at `offset`."""
        laid = self._laid
        return tensors_of([item.places for item in laid.items], laid.starts, region, offset)


def answer_item(described: bytes) -> Item:
    """Decode an item of a layout, with its tensors as TensorSlice."""
    item = layout.answer_item(described)
    item.places = [
        TensorSlice(p.name, dtypes.BY_NUMBER[p.number], p.shape, p.start, p.size)
        for p in item.places
    ]
    return item


def give(batch: Batch, i: int, answer: layout.Answer, tensors: list[Tensor], final: bool) -> None:
    """Answer request `i` of a batch with an answer of the child, which may be an error."""
    if answer.error is not None:
        code, text = answer.error
        batch.fail(i, CoreError(Kind(code), text), final=final)
        return
    parameters = json.loads(answer.parameters) if answer.parameters else None
    batch.respond(i, tensors, parameters, final=final)
