"""python -m memory_budget: a soak of the memory budget; 0 if everything held."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from memory_budget.run import soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m memory_budget")
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--least-mb", type=float, default=20.0)
    parser.add_argument("--most-mb", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=600.0, help="for which requests are sent")
    parser.add_argument(
        "--quiet",
        type=float,
        help="seconds before and after with requests for one model only, by default a tenth of --seconds; "
        "0 to compare no times",
    )
    parser.add_argument(
        "--apart",
        action="store_true",
        help="give loads and this program the last processor, by host policies, and the pinned model and its "
        "client the first one",
    )
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--python", type=int, default=4, help="models in child processes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.apart and len(os.sched_getaffinity(0)) < 2:
        parser.error("--apart needs two processors, this program may use one; leave it out")
    if options.quiet is None:
        options.quiet = options.seconds / 10
    # SIGTERM leaves the block below, which ends the server and removes the folder.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="memory-budget-") as folder:
        found = soak(Path(folder), **vars(options))
    for what, fact in found.facts.items():
        print(f"{what}: {fact}")
    print(", ".join(f"{count} {what}" for what, count in found.results.most_common()))
    for problem in found.problems:
        print(f"PROBLEM {problem}")
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
