"""Settings: one way to run a model. Space: the values that a search may combine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

CPU, GPU = "KIND_CPU", "KIND_GPU"
_UNSET = -2.0  # coordinate of threads that the backend chooses
_APART = 4.0  # coordinates of different kinds


@dataclass(frozen=True, order=True)
class Settings:
    """What a search may change.

    instances   of the model, in each process
    batch       most rows that share an execution; 1 for no batching, 0 for a model without a batch dimension
    delay_us    longest wait of a request for a larger batch
    least       rows from which a batch does not wait any longer; 0 for `batch`
    threads     of one execution; 0 for the number that the backend chooses
    kind        of the instances, as in the configuration
    workers     processes of the server
    """

    instances: int = 1
    batch: int = 1
    delay_us: int = 0
    least: int = 0
    threads: int = 0
    kind: str = CPU
    workers: int = 1

    @property
    def shown(self) -> str:
        """Return a short text, such as '2 instances, batch 16, delay 500 µs'."""
        parts = ["1 instance" if self.instances == 1 else f"{self.instances} instances"]
        if self.kind == GPU:
            parts[0] += " on a GPU"
        if self.batch == 1:
            parts.append("no batching")
        elif self.batch and self.least:
            parts.append(f"batch {self.least} to {self.batch}")
        elif self.batch:
            parts.append(f"batch {self.batch}")
        if self.delay_us:
            parts.append(f"delay {self.delay_us:,} µs")
        if self.threads:
            parts.append("1 thread" if self.threads == 1 else f"{self.threads} threads")
        if self.workers > 1:
            parts.append(f"{self.workers} workers")
        return ", ".join(parts)

    @property
    def batching(self) -> tuple[int, int, int]:
        """Return largest batch, delay and least batch."""
        return self.batch, self.delay_us, self.least

    def with_batching_of(self, other: Settings) -> Settings:
        """Return these settings with batches and delay of other ones."""
        return replace(self, batch=other.batch, delay_us=other.delay_us, least=other.least)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the preferred sizes of batches, ascending: `least` times powers of two, and `batch`."""
        least = self.least or self.batch
        return tuple(steps(least, self.batch)) if least else ()

    @property
    def place(self) -> tuple[float, ...]:
        """Return coordinates in which settings that behave alike are near each other; a step is about 1."""
        batch = max(self.batch, 1)
        return (
            math.log2(self.instances),
            math.log2(batch),
            math.log2(1 + self.delay_us / 250),
            math.log2(batch / (self.least or batch)) / 2,
            math.log2(self.threads) if self.threads else _UNSET,
            _APART if self.kind == GPU else 0.0,
            math.log2(self.workers),
        )

    @property
    def cost(self) -> tuple[int, ...]:
        """Return what orders settings that are equally good: less of what is listed first."""
        return self.workers, self.instances, self.threads, self.delay_us, self.batch, -self.least


@dataclass(frozen=True)
class Space:
    """All combinations of some values, without those that make no difference.

    current        the settings of the model now; part of the space, whatever its values
    parts          for batches with a delay: 1 for those that wait until they are full, 4 for those that wait
                   for a quarter
    most_threads   of all executions together; a combination with more than one each has no more
    rows           of a request
    """

    current: Settings
    instances: Sequence[int]
    batches: Sequence[int] = (1,)
    delays_us: Sequence[int] = (0,)
    parts: Sequence[int] = (1,)
    threads: Sequence[int] = (0,)
    kinds: Sequence[str] = (CPU,)
    workers: Sequence[int] = (1,)
    most_threads: int = 0
    rows: int = 1
    _all: list[Settings] = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        found = dict.fromkeys([self.current, *self._combined()])
        self._all.extend(found)

    def __iter__(self) -> Iterator[Settings]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def _combined(self) -> Iterator[Settings]:
        batching = [*self._batching()]
        for instances, threads, kind, workers in itertools.product(
            self.instances, self.threads, self.kinds, self.workers
        ):
            if kind == GPU and threads:
                continue  # they are those of executions on processors
            if threads > 1 and self.most_threads < threads * instances * workers:
                continue
            for batch, delay, least in batching:
                yield Settings(instances, batch, delay, least, threads, kind, workers)

    def _batching(self) -> Iterator[tuple[int, int, int]]:
        for batch, delay, part in itertools.product(self.batches, self.delays_us, self.parts):
            if delay and batch <= 1:
                continue  # there is no batch to wait for
            if part > 1 and not (delay and batch // part > self.rows):
                continue  # it never waits
            yield batch, delay, 0 if part == 1 else batch // part


def steps(least: int, most: int) -> list[int]:
    """Return `least`, its products with powers of two below `most`, and `most`."""
    powers = [least * 2**i for i in range(31) if least < least * 2**i < most]
    return sorted({least, *powers, most}) if least <= most else []
