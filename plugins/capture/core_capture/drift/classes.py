"""ClassSketch: how often each value of a tensor comes: whole numbers, booleans, strings, classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

MOST = 100  # values that are counted; a tensor with more of them has no classes
LONGEST = 64  # characters of a string


@dataclass
class ClassSketch:
    """Counts of values. With more than MOST different values, `open` becomes true, and nothing is counted."""

    counts: Counter[str] = field(default_factory=Counter)
    open: bool = False

    def add(self, values: Iterable[str]) -> None:
        if not self.open:
            self.counts.update(each[:LONGEST] for each in values)
            self._bound()

    def merge(self, other: ClassSketch) -> None:
        self.open = self.open or other.open
        self.counts += other.counts
        self._bound()

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def shares(self) -> dict[str, float]:
        """Return value → share of all values; {} if there are too many different ones."""
        total = self.total
        return {name: count / total for name, count in self.counts.items()} if total else {}

    def _bound(self) -> None:
        if self.open or len(self.counts) > MOST:
            self.open = True
            self.counts.clear()
