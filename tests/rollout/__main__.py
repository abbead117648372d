"""python -m rollout: traffic by version under a steady load; 0 if everything held."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from rollout.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rollout")
    parser.add_argument("--rate", type=float, default=500.0, help="requests per second")
    parser.add_argument("--seconds", type=float, default=600.0, help="of all phases together")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    # SIGTERM leaves the block below, which ends the server and removes the folder.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="rollout-") as folder:
        found = run(Path(folder), **vars(options))
    for what, fact in found.facts.items():
        print(f"{what}: {fact}")
    for problem in found.problems:
        print(f"PROBLEM {problem}")
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
