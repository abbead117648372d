"""The data of metrics: a family of samples under one name. Frontends render them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from core.native.distribution import middle_of
from core.telemetry.labels import Labels, plus

KindOfMetric = Literal["counter", "gauge", "histogram", "summary"]
Together = Literal["sum", "first", "largest", "smallest", "latest", "latest or sum"]


class Sample(NamedTuple):
    """One value of a metric. A scrape of a server with many models has tens of thousands.

    labels   name → value, any text
    suffix   appended to the family's name: "", "_bucket", "_sum", "_count"
    """

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


# Sample(labels, value, suffix) without the Python-level __new__ of a NamedTuple.
new: Callable[[type[Sample], tuple[Mapping[str, str], float, str]], Sample] = tuple.__new__


@dataclass(frozen=True)
class Summary:
    """The data that a summary's samples are made of. Workers add up these data: quantiles cannot be added.

    quantiles         the exposed quantiles
    count, total_us   number and total of all durations since the load, in microseconds
    lowest, highest   shortest and longest duration of the recent time window, in nanoseconds
    cells             durations in that window, by cell of a core.native.distribution.QuantileSketch
    """

    labels: Mapping[str, str]
    quantiles: tuple[float, ...]
    count: int
    total_us: int
    lowest: int = 0
    highest: int = 0
    cells: Mapping[int, int] = field(default_factory=dict)

    def plus(self, other: Summary) -> Summary:
        """Return the summary of both sets of durations."""
        known = [each for each in (self, other) if each.cells]
        return Summary(
            self.labels,
            self.quantiles,
            self.count + other.count,
            self.total_us + other.total_us,
            min((each.lowest for each in known), default=0),
            max((each.highest for each in known), default=0),
            Counter(self.cells) + Counter(other.cells),
        )

    def samples(self) -> list[Sample]:
        """Return count, sum and quantiles in microseconds; quantiles are NaN without recent durations."""
        return [
            Sample(self.labels, self.count, "_count"),
            Sample(self.labels, self.total_us, "_sum"),
            *(
                Sample(
                    plus(self.labels, "quantile", as_label(quantile)), self._quantile_us(quantile)
                )
                for quantile in self.quantiles
            ),
        ]

    def _quantile_us(self, quantile: float) -> float:
        """Return a quantile of the recent durations in microseconds; NaN if there are none."""
        total = sum(self.cells.values())
        if not total:
            return math.nan
        rank = max(1, math.ceil(quantile * total))
        if rank == 1:
            return self.lowest / 1000
        if rank == total:
            return self.highest / 1000
        below, found = 0, 0
        for cell, count in sorted(self.cells.items()):
            found = cell
            below += count
            if below >= rank:
                break
        return min(max(middle_of(found), self.lowest), self.highest) / 1000


@dataclass
class Family:
    """Samples of one name.

    name       the whole name; the suffix `_total` is not added to counters
    together   how workers combine their samples with the same labels
    summaries  the data that samples of a summary are made of; empty for other kinds
    changed    by time.monotonic_ns(), 0 for never: each sample's last change for "latest", its last `set` for
               "latest or sum" (which is the sum if all are 0); empty for other values of `together`
    """

    name: str
    kind: KindOfMetric
    help: str
    samples: list[Sample] = field(default_factory=list)
    together: Together = "sum"
    summaries: list[Summary] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)


def histogram_samples(
    labels: Mapping[str, str], bounds: tuple[float, ...], counts: list[int], total: float
) -> list[Sample]:
    """Return the samples of a histogram: cumulative counts of the buckets, then sum and count.

    counts   observations of each bucket, not cumulative; one more than there are bounds
    total    sum of the observed values
    """
    texts = _texts_of(bounds)
    if type(labels) is Labels:
        longer: Sequence[Mapping[str, str]] = labels.each("le", texts)
    else:
        longer = [{**labels, "le": text} for text in texts]
    samples, below = [], 0
    # The last bucket counts all: a configuration may give infinity as a bound, too.
    for known, count in zip(longer[:-1], counts, strict=False):
        below += count
        samples.append(new(Sample, (known, below, "_bucket")))
    every = sum(counts)
    samples.append(new(Sample, (longer[-1], every, "_bucket")))
    return [*samples, Sample(labels, total, "_sum"), Sample(labels, every, "_count")]


@lru_cache(1024)
def _texts_of(bounds: tuple[float, ...]) -> tuple[str, ...]:
    """Return the label texts of a histogram's buckets: the finite bounds, then infinity once."""
    return (*(as_label(bound) for bound in bounds if bound != math.inf), "+Inf")


@lru_cache(4096)
def as_label(number: float) -> str:
    """Return a bound or a quantile as label text; different numbers give different texts."""
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return str(int(number)) if number == int(number) and abs(number) < 2**53 else repr(number)
