from collections.abc import Sequence

def middle_of(cell: int) -> float:
    """Return the duration in ns that represents a cell of a QuantileSketch."""

class Histogram:
    """Histogram of durations. Not thread-safe: call from the event loop only.

    bounds    upper bounds of the buckets, ascending, in units of `unit_ns`; a last bucket has no bound
    sum_ns    sum of all durations
    """

    bounds: tuple[float, ...]
    unit_ns: int
    sum_ns: int
    def __init__(self, bounds: Sequence[float], unit_ns: int) -> None: ...
    def observe(self, ns: int) -> None:
        """Count a duration into the first bucket whose bound is not below it."""

    def counts(self) -> list[int]:
        """Return the count of each bucket, not cumulated; the last bucket has no bound."""

class QuantileSketch:
    """Sketch of recent durations that gives any quantile within 1 %.

    It counts durations in cells, each at most 1/64 of its durations wide (64 ns below 4 µs), separately for
    five periods: `turn` begins a new period and drops the oldest. A period takes 8 KiB from its first
    duration on.
    Not thread-safe: call from the event loop only.

    count, sum_ns   count and sum of all durations ever observed
    """

    count: int
    sum_ns: int
    def observe(self, ns: int) -> int:
        """Count a duration. Raise MemoryError."""

    def turn(self) -> None:
        """Begin a new period."""

    def recent(self) -> tuple[int, int, dict[int, int]]:
        """Return the shortest and longest recent duration, and the counts of the cells by number.

        Cells are numbered from short to long, alike in every QuantileSketch, so counts of several sketches
        add up. Without durations there are no cells, and the other two are 0.
        """
