"""Ledger: the changes that a worker has to catch up when it starts later than the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Entry(NamedTuple):
    """A change as the workers were asked for it: a method of theirs and its packed arguments."""

    method: str
    body: bytes


class Ledger:
    """The last change of each thing, in the order of those changes.

    A thing is a text that the worker who asked for the change has chosen: "model bert". What is before
    the first space is its area. Bounded by what clients can have loaded, registered and set at a time.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def keep(self, thing: str, entry: Entry) -> None:
        """The thing has been changed."""
        self._entries.pop(thing, None)
        self._entries[thing] = entry

    def drop(self, thing: str) -> None:
        """The thing is as it was at the start; so is its whole area, if only that is named.

        With a place goes what was said of its model.
        """
        area, space, name = thing.partition(" ")
        for each in [each for each in self._entries if _area(each) == area]:
            if not space or each == thing:
                del self._entries[each]
        if area == "place":
            self._entries.pop(f"model {name}", None)

    def entries(self) -> Iterator[Entry]:
        """What to do, places of models first, then models: settings may be those of a model."""
        first = ("place", "model")
        for area in first:
            yield from (self._entries[each] for each in self._entries if _area(each) == area)
        yield from (self._entries[each] for each in self._entries if _area(each) not in first)


def _area(thing: str) -> str:
    return thing.partition(" ")[0]
