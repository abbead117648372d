"""The doors of all versions that serve, by model and number: one look for each request.

frontend ─► [Doors] ─► Door ─► …  Written when versions come and go, read for each request.
"""

from __future__ import annotations

from collections.abc import Callable

from core.pipeline.intake import Door
from core.request import NEWEST


class Doors:
    """The table of all versions that serve: model and number → Door. Loop thread only.

    missing   called with model and version for what is not there: raises CoreError that says why
    """

    def __init__(self, missing: Callable[[str, int], Door]):
        self._missing = missing
        self._newest: dict[str, Door] = {}
        self._numbered: dict[tuple[str, int], Door] = {}
        self._numbers: dict[str, tuple[int, ...]] = {}  # of a model's versions among these

    def find(self, name: str, version: int) -> Door:
        """The door of that version, or of the newest for NEWEST; raises what `missing` raises."""
        newest = version == NEWEST
        door = self._newest.get(name) if newest else self._numbered.get((name, version))
        return door if door is not None else self._missing(name, version)

    def put(self, name: str, doors: dict[int, Door]) -> None:
        """From now on these are the versions of a model that serve; none with an empty dict."""
        for number in self._numbers.pop(name, ()):
            del self._numbered[name, number]
        self._newest.pop(name, None)
        for number, door in doors.items():
            self._numbered[name, number] = door
        if doors:
            self._numbers[name] = tuple(doors)
            self._newest[name] = doors[max(doors)]
