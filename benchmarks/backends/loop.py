"""A loop over the framework: python -m benchmarks.backends.loop CASE FOLDER

It runs in a separate process, on the server's core. For each line ROWS SECONDS of its standard input it
prints the rows per second of a loop over batches of so many rows. Between two lines it is idle.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from benchmarks.backends.case import Case, cases
from benchmarks.backends.serving import ROOT, STOP_S
from benchmarks.models.sample import Arrays

DATA = 16 << 20  # bytes of all batches of a loop
MOST_BATCHES = 1000


class Loop:
    """The process of the loop. Close it after use.

    folder   folder of a version, with the model's file
    core     number of its only core
    """

    def __init__(self, case: Case, folder: Path, core: int):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.backends.loop", case.name, str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )

    def rate(self, rows: int, seconds: float) -> float:
        """Return rows per second. Raises RuntimeError if the process has ended; its error is on stderr."""
        to, back = _pipe(self._process.stdin), _pipe(self._process.stdout)
        try:
            print(rows, seconds, file=to, flush=True)
        except BrokenPipeError:
            pass  # readline then returns nothing
        if not (answer := back.readline()):
            raise RuntimeError(f"the framework's loop has ended with {self._process.wait(STOP_S)}")
        return float(answer)

    def close(self) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait(STOP_S)
        _pipe(self._process.stdout).close()


def _pipe(found: IO[str] | None) -> IO[str]:
    assert found is not None
    return found


def best(rates: dict[int, float]) -> int:
    """Return the largest batch whose rate equals the best, within noise."""
    return max(rows for rows, rate in rates.items() if rate > 0.97 * max(rates.values()))


def sizes(case: Case) -> list[int]:
    """Return batches of 1, 2, 4, … rows up to the case's largest."""
    return [1 << power for power in range(case.most.bit_length())]


def rate(case: Case, run: Callable[[Arrays], Arrays], rows: int, seconds: float) -> float:
    """Return rows per second of sequential runs with batches of `rows` rows.

    Each run has another batch, as in a loop over a data set and in a server: a repeated batch would stay in
    the processor's cache.
    """
    batch = case.rows(rows)
    batches = [
        {case.inputs: batch.copy()} for _ in range(max(1, min(MOST_BATCHES, DATA // batch.nbytes)))
    ]
    for _ in range(3):  # TorchScript compiles in its first runs
        run(batches[0])
    runs, start = 0, time.perf_counter()
    while True:
        run(batches[runs % len(batches)])
        runs += 1
        if (passed := time.perf_counter() - start) >= seconds:
            return runs * rows / passed


def main(name: str, folder: str) -> None:
    case = next(each for each in cases() if each.name == name)
    run = case.load(Path(folder))
    for line in sys.stdin:
        rows, seconds = line.split()
        print(rate(case, run, int(rows), float(seconds)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
