"""The framework's own loop: python -m benchmarks.backends.loop CASE FOLDER SECONDS

In a process of its own, on the core that the server has too. For each batch size it runs the model as
often as it can, and prints what it found as JSON: rows → rows a second.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.backends.case import Case, cases
from benchmarks.models.sample import Arrays


def rates(case: Case, run: Callable[[Arrays], Arrays], seconds: float) -> dict[int, float]:
    """Rows a second for batches of 1, 2, 4, … rows up to the case's largest."""
    sizes = [1 << power for power in range(case.most.bit_length())]
    return {rows: _rate(case, run, rows, seconds / len(sizes)) for rows in sizes}


def _rate(case: Case, run: Callable[[Arrays], Arrays], rows: int, seconds: float) -> float:
    inputs = {case.inputs: case.rows(rows)}
    for _ in range(3):  # TorchScript compiles in its first runs
        run(inputs)
    runs, start = 0, time.perf_counter()
    while True:
        run(inputs)
        runs += 1
        if (passed := time.perf_counter() - start) >= seconds:
            return runs * rows / passed


def main(name: str, folder: str, seconds: str) -> None:
    case = next(each for each in cases() if each.name == name)
    print(json.dumps(rates(case, case.load(Path(folder)), float(seconds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
