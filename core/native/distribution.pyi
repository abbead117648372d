from collections.abc import Sequence

def middle_of(cell: int) -> float:
    """Return the middle of a cell of a QuantileSketch, in nanoseconds."""

class Histogram:
    """Histogram of durations. Not thread-safe: call from the event loop only.

    bounds    upper bounds of buckets, inclusive, ascending, in units of `unit_ns` nanoseconds; one more
              bucket has no bound
    sum_ns    sum of all durations in nanoseconds
    """

    bounds: tuple[float, ...]
    unit_ns: int
    sum_ns: int
    def __init__(self, bounds: Sequence[float], unit_ns: int) -> None: ...
    def observe(self, ns: int) -> None:
        """Count a duration in the first bucket whose bound is at least the duration."""

    def counts(self) -> list[int]:
        """Return the count of each bucket, not cumulated; the last bucket has no bound."""

class QuantileSketch:
    """Sketch of recent durations that gives any quantile within 1 %.

    It counts durations in cells, each at most 1/64 of its durations wide (64 ns below 4 µs), for five
    periods: the current one and four before it. A period takes 8 KiB from its first duration on.
    Not thread-safe: call from the event loop only.

    count, sum_ns   number of all durations ever observed, and their sum in nanoseconds
    """

    count: int
    sum_ns: int
    def observe(self, ns: int) -> int:
        """Count a duration in the current period; return 0. Raise MemoryError if a period gets no memory."""

    def turn(self) -> None:
        """Begin a new period, and drop the oldest one."""

    def recent(self) -> tuple[int, int, dict[int, int]]:
        """Return the shortest and longest duration of the periods in ns, and cell → count for filled cells.

        Cells are numbered from short to long, the same in every QuantileSketch, so counts of several sketches
        can be added. Without durations the result is (0, 0, {}).
        """
