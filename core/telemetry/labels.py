"""Labels of samples: made and rendered once for each model, not for each sample of each scrape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Labels(dict[str, str]):
    """Labels that must not change: name → value, any text. Call from the event loop only, except `text`.

    text   rendered labels, cached by the writer; "" before the first rendering
    """

    __slots__ = ("_each", "_longer", "text")

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.text = ""
        self._longer: dict[tuple[str, str], Labels] = {}
        self._each: dict[tuple[str, tuple[str, ...]], list[Labels]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # other processes get a plain dict

    def plus(self, name: str, value: str) -> Labels:
        """Return these labels and one more, kept for later calls: use it for few names and values only."""
        found = self._longer.get((name, value))
        if found is None:
            found = self._longer[name, value] = Labels(self)
            dict.__setitem__(found, name, value)
        return found

    def each(self, name: str, values: tuple[str, ...]) -> list[Labels]:
        """Return for each of the values these labels and one more; the list is kept."""
        found = self._each.get((name, values))
        if found is None:
            found = self._each[name, values] = [self.plus(name, value) for value in values]
        return found


def plus(labels: Mapping[str, str], name: str, value: str) -> Mapping[str, str]:
    """Return the labels and one more."""
    return labels.plus(name, value) if type(labels) is Labels else {**labels, name: value}
