"""Ledger: the changes that a worker must run when it starts later than the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Entry(NamedTuple):
    """A change as it was sent to the workers: a method and its packed arguments."""

    method: str
    body: bytes


class Ledger:
    """The last change of each thing, in the order of the changes.

    A thing is a text of the worker that requests the change, such as "model bert"; the part before the first
    space is its area. The number of things that clients load, register and set bounds the size.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def keep(self, thing: str, entry: Entry) -> None:
        """Record the last change of a thing."""
        self._entries.pop(thing, None)
        self._entries[thing] = entry

    def drop(self, thing: str) -> None:
        """Remove the change of a thing, or of a whole area if `thing` names only that.

        For "place NAME", remove also the change of "model NAME".
        """
        area, space, name = thing.partition(" ")
        for each in [each for each in self._entries if _area(each) == area]:
            if not space or each == thing:
                del self._entries[each]
        if area == "place":
            self._entries.pop(f"model {name}", None)

    def entries(self) -> Iterator[Entry]:
        """Yield the changes: first model locations, then models, then others, which may concern a model."""
        first = ("place", "model")
        for area in first:
            yield from (self._entries[each] for each in self._entries if _area(each) == area)
        yield from (self._entries[each] for each in self._entries if _area(each) not in first)


def _area(thing: str) -> str:
    return thing.partition(" ")[0]
