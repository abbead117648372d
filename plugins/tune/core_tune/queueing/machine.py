"""Machine: how long executions take, as fitted to what was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Machine:
    """The times of a model on a machine.

    base_s, row_s   an execution of n rows takes base_s + n * row_s, if few others run
    bends           pairs of a batch size and the factor by which its time differs from that line
    cores           executions that run at once without slowing each other down
    spread          factors of the time of an execution, as likely as each other, ascending
    front_s         time of a request outside of the instances, one after the other: the event loop
    """

    base_s: float
    row_s: float
    bends: tuple[tuple[int, float], ...] = ()
    cores: float = 1.0
    front_s: float = 0.0
    spread: tuple[float, ...] = (1.0,)

    def table(self, instances: int, rows: int, most: int) -> Array:
        """Return the seconds of an execution by (busy instances - 1, requests - 1).

        rows   of each request
        most   requests of an execution
        """
        sizes = rows * np.arange(1, most + 1)
        alone = self.base_s + self.row_s * sizes
        if self.bends:
            at, factors = zip(*self.bends, strict=True)
            alone = alone * np.exp(np.interp(np.log(sizes), np.log(at), np.log(factors)))
        made: Array = np.outer(self.slowdown(np.arange(1, instances + 1)), alone)
        return made

    def slowdown(self, busy: Array) -> Array:
        """Return the factor of the time of an execution while so many run, itself included."""
        found: Array = np.maximum(1.0, busy / self.cores)
        return found
