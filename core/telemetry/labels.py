"""Labels of samples: those of a model are made once, not for each of its samples in each scrape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Labels(dict[str, str]):
    """Name → value, any text. Not to be changed: who writes them knows an object again. Loop thread only."""

    __slots__ = ("_longer",)

    def __init__(self, *given: Any):
        super().__init__(*given)
        self._longer: dict[tuple[str, str], Labels] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # for other processes: what they get is theirs

    def plus(self, name: str, value: str) -> Labels:
        """These and one more; the same object each time. For names and values of which there are few."""
        found = self._longer.get((name, value))
        if found is None:
            found = self._longer[name, value] = Labels(self)
            dict.__setitem__(found, name, value)
        return found


def plus(labels: Mapping[str, str], name: str, value: str) -> Mapping[str, str]:
    """Those labels and one more."""
    return labels.plus(name, value) if type(labels) is Labels else {**labels, name: value}
