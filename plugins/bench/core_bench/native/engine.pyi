from core_bench.load.plan import WirePlan

HAS_GRPC: bool
"""Whether gRPC is compiled in: needs libnghttp2 at the build."""

def now_ns() -> int:
    """Return the time of CLOCK_MONOTONIC."""

class Histogram:
    """Counts of times in nanoseconds, in 39 KB. Quantiles are exact to 0.4 %. Not thread-safe."""

    def add(self, value_ns: int) -> None: ...
    def merge(self, other: Histogram) -> None: ...
    def quantile(self, q: float) -> int:
        """Return the value of rank ceil(q * count); 0 without values. Raises ValueError for another q."""
    @property
    def count(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    def buckets(self) -> list[tuple[int, int]]:
        """Return the smallest value and the count of each bucket that is not empty."""

class Tally:
    """What one round of load has measured. Its histograms are copies. Not thread-safe."""

    def begin(self, begin_ns: int, end_ns: int) -> None:
        """Set the measured time."""
    def end_at(self, end_ns: int) -> None: ...
    def within(self, at_ns: int) -> bool: ...
    def answered(
        self,
        due: int,
        sent: int,
        first: int,
        last: int,
        responses: int,
        tokens: int,
        waited: bool,
        now: int,
    ) -> None:
        """Count a right answer. All times are those of now_ns; `first` is 0 for an answer in one piece."""
    def gap(self, value_ns: int) -> None:
        """Count the time between two responses of a request."""
    def error(self, text: str) -> None: ...
    def censored(self, waited_ns: int, was_sent: bool) -> None:
        """Count a request that had no answer at the end of the round, with the time that it has waited."""
    def began_sequence(self) -> None: ...
    def used_cpu(self, cpu_ns: int) -> None: ...
    def merge(self, other: Tally) -> None:
        """Add what another thread has measured in the same round."""
    @property
    def measured_ns(self) -> int: ...
    @property
    def counts(self) -> dict[str, int]: ...
    @property
    def errors(self) -> dict[str, int]:
        """Counts by text; at most 64 texts, the rest as "other errors"."""
    @property
    def latency(self) -> Histogram: ...
    @property
    def service(self) -> Histogram: ...
    @property
    def first(self) -> Histogram: ...
    @property
    def gaps(self) -> Histogram: ...
    @property
    def per_token(self) -> Histogram: ...
    @property
    def lag(self) -> Histogram: ...

class Loop:
    """The compiled load generator: one thread of load, over plain TCP or a Unix socket.

    plan   see core_bench.load.plan.WirePlan
    Raises ValueError for gRPC if it is not compiled in.
    """

    def __init__(self, plan: WirePlan) -> None: ...
    def run(
        self, settle_ns: int, measure_ns: int, drain_ns: int, give_up_ns: int, at_least: int
    ) -> tuple[Tally, bool]:
        """Run one round without the GIL; return what was measured, and False if the server was lost.

        Call from one thread at a time. See loop.hpp, Round, for the arguments.
        """
    def stop(self) -> None:
        """End the round; the next ones end at once. From any thread."""
    @property
    def progress(self) -> tuple[int, int]:
        """Right answers and errors so far. From any thread."""
