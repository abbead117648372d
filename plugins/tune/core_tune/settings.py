"""Settings: one way to run a model. Space: the values that a search may combine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Settings:
    """What a search may change.

    instances   of the model, in each process
    batch       most rows that share an execution; 1 for no batching, 0 for a model without a batch dimension
    delay_us    longest wait of a request for a larger batch
    """

    instances: int = 1
    batch: int = 1
    delay_us: int = 0

    @property
    def shown(self) -> str:
        """Return a short text, such as '2 instances, batch 16, delay 500 µs'."""
        parts = ["1 instance" if self.instances == 1 else f"{self.instances} instances"]
        if self.batch == 1:
            parts.append("no batching")
        elif self.batch:
            parts.append(f"batch {self.batch}")
        if self.delay_us:
            parts.append(f"delay {self.delay_us:,} µs")
        return ", ".join(parts)

    @property
    def place(self) -> tuple[float, ...]:
        """Return coordinates in which settings that behave alike are near each other; a step is about 1."""
        return (
            math.log2(self.instances),
            math.log2(max(self.batch, 1)),
            math.log2(1 + self.delay_us / 250),
        )

    @property
    def cost(self) -> tuple[int, int, int]:
        """Return what orders settings that are equally good: fewer instances, less delay, smaller batches."""
        return self.instances, self.delay_us, self.batch


@dataclass(frozen=True)
class Space:
    """All combinations of some values, without those that make no difference.

    current   the settings of the model now; part of the space, whatever its values
    """

    current: Settings
    instances: Sequence[int]
    batches: Sequence[int] = (1,)
    delays_us: Sequence[int] = (0,)
    _all: list[Settings] = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        found = dict.fromkeys([self.current, *self._combined()])
        self._all.extend(found)

    def __iter__(self) -> Iterator[Settings]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def _combined(self) -> Iterator[Settings]:
        for instances, batch, delay in itertools.product(
            self.instances, self.batches, self.delays_us
        ):
            if delay and batch <= 1:
                continue  # there is no batch to wait for
            yield Settings(instances, batch, delay)


def steps(least: int, most: int) -> list[int]:
    """Return `least`, the powers of two between, and `most`."""
    powers = [2**i for i in range(31) if least < 2**i < most]
    return sorted({least, *powers, most}) if least <= most else []
