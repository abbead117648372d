"""Ledger: the changes that a worker must run when it starts later than the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Entry(NamedTuple):
    """A change as it was sent to the workers: a method and its packed arguments."""

    method: str
    body: bytes


class Ledger:
    """The last change of each subject, in the order of the changes.

    A subject is a text of the worker that requests the change, such as "model bert"; the part before the
    first space is its area. The ledger has one entry for each subject, however often it changes.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def keep(self, subject: str, entry: Entry) -> None:
        """Record the last change of a subject in place of an earlier one, behind those of other subjects."""
        self._entries.pop(subject, None)
        self._entries[subject] = entry

    def drop(self, subject: str) -> None:
        """Remove the change of a subject, if there is one; all of an area if `subject` is only its name.

        For "place NAME", remove also the change of "model NAME".
        """
        area, space, name = subject.partition(" ")
        for each in [each for each in self._entries if _area(each) == area]:
            if not space or each == subject:
                del self._entries[each]
        if area == "place":
            self._entries.pop(f"model {name}", None)

    def entries(self) -> Iterator[Entry]:
        """Yield the changes: first model locations, then models, then others, which may concern a model."""
        first = ("place", "model")
        for area in first:
            yield from (self._entries[each] for each in self._entries if _area(each) == area)
        yield from (self._entries[each] for each in self._entries if _area(each) not in first)


def _area(subject: str) -> str:
    return subject.partition(" ")[0]
