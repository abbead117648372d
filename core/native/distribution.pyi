from collections.abc import Sequence

def middle_of(cell: int) -> float:
    """The duration in ns that stands for all in a cell of a Spread."""

class Histogram:
    """How many durations were at most as long as each bound. Loop thread only.

    bounds    ascending, in units of `unit_ns`; with none there is only the bucket of everything
    sum_ns    of all durations
    """

    bounds: tuple[float, ...]
    unit_ns: int
    sum_ns: int
    def __init__(self, bounds: Sequence[float], unit_ns: int) -> None: ...
    def observe(self, ns: int) -> None:
        """Count a duration into the first bucket whose bound is not below it."""

    def counts(self) -> list[int]:
        """Of each bucket alone; the last is that without a bound."""

class Spread:
    """Durations of the last while, from which any quantile can be told within 1 %. Loop thread only.

    Durations of one age are counted together in cells, each at most a 64th of its durations wide (64 ns
    below 4 us). There are five ages: `turn` begins a new one and forgets the oldest. An age takes 8 KiB
    from its first duration on.

    count, sum_ns   of all durations ever
    """

    count: int
    sum_ns: int
    def observe(self, ns: int) -> int:
        """Count a duration. Raises MemoryError."""

    def turn(self) -> None:
        """A fifth of the while has passed."""

    def recent(self) -> tuple[int, int, dict[int, int]]:
        """Shortest and longest duration of the last while, and how many are in which cell.

        Cells are numbered from short to long, and the same in every Spread, so those of several add up. No
        cells, no durations: then the others are 0.
        """
