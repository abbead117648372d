"""Machine: how long executions take, as fitted to what was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core_tune.settings import Settings

Array = np.ndarray


@dataclass(frozen=True)
class Machine:
    """The times of a model on processors, or on a GPU.

    base_s, row_s   an execution of n rows takes base_s + n * row_s with one thread, if few others run
    bends           pairs of a batch size and the factor by which its time differs from that line
    cores           executions with one thread that run at once without slowing each other down
    spread          factors of the time of an execution, as likely as each other, ascending
    front_s         time of a request outside of the instances, one after the other: the event loop
    shared          part of an execution that its threads share; 0 if more threads make no difference
    processors      threads of an execution whose number the backend chooses
    """

    base_s: float
    row_s: float
    bends: tuple[tuple[int, float], ...] = ()
    cores: float = 1.0
    front_s: float = 0.0
    spread: tuple[float, ...] = (1.0,)
    shared: float = 0.0
    processors: int = 1

    def table(self, settings: Settings, rows: int, most: int) -> Array:
        """Return the seconds of an execution by (busy instances of a process - 1, requests - 1).

        rows   of each request
        most   requests of an execution
        """
        sizes = rows * np.arange(1, most + 1)
        alone = self.base_s + self.row_s * sizes
        if self.bends:
            at, factors = zip(*self.bends, strict=True)
            alone = alone * np.exp(np.interp(np.log(sizes), np.log(at), np.log(factors)))
        # All processes are as busy as this one, on average.
        busy = np.arange(1, settings.instances + 1) * settings.workers
        part = pace(self.shared, settings.threads or self.processors)
        made: Array = np.outer(self.slowdown(busy, settings.threads), alone * part)
        return made

    def slowdown(self, busy: Array, threads: int = 1) -> Array:
        """Return the factor of the time of an execution while so many run, itself included."""
        used = 1 / pace(self.shared, threads or self.processors)
        found: Array = np.maximum(1.0, busy * used / self.cores)
        return found


def pace(shared: float, threads: int) -> float:
    """Return the time of an execution with some threads, as a part of that with one (Amdahl's law)."""
    return 1 - shared + shared / threads
