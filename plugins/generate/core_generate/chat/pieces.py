"""What a generated text consists of: content, reasoning, and calls of tools, in pieces as they arrive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Content(NamedTuple):
    """Text of the answer."""

    text: str


class Reasoning(NamedTuple):
    """Text that the model wrote to itself before the answer."""

    text: str


class CallBegin(NamedTuple):
    """The begin of a call of a tool. CallArguments of the same index follow, or none.

    index   number of the call in its text, from 0 on
    id      identifier that the parser makes for the call
    name    name of the function
    """

    index: int  # type: ignore[assignment]
    id: str
    name: str


class CallArguments(NamedTuple):
    """A part of the text of a call's arguments, which is the next part of the call with this index.

    Together the parts make a JSON object, unless the model wrote something else or was cut off.
    """

    index: int  # type: ignore[assignment]
    text: str


Piece = Content | Reasoning | CallBegin | CallArguments


class Call(NamedTuple):
    """A whole call. `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class Whole(NamedTuple):
    """All pieces of a generation, joined by kind; "" and [] for what it does not have."""

    content: str
    reasoning: str
    calls: list[Call]


def joined(pieces: Iterable[Piece]) -> Whole:
    """Return the whole content, the whole reasoning, and the calls, in the order in which they begin."""
    content: list[str] = []
    reasoning: list[str] = []
    begun: dict[int, CallBegin] = {}
    arguments: dict[int, list[str]] = {}
    for piece in pieces:
        if isinstance(piece, Content):
            content.append(piece.text)
        elif isinstance(piece, Reasoning):
            reasoning.append(piece.text)
        elif isinstance(piece, CallBegin):
            begun[piece.index] = piece
            arguments[piece.index] = []
        else:
            arguments[piece.index].append(piece.text)
    calls = [Call(each.id, each.name, "".join(arguments[index])) for index, each in begun.items()]
    return Whole("".join(content), "".join(reasoning), calls)
