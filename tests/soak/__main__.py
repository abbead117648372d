"""python -m soak: a soak, its table, and 0 if nothing was lost."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from soak.report import lines
from soak.run import soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=500.0, help="requests a second, about")
    parser.add_argument("--keep", action="store_true", help="leave models and log where they are")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        found = soak(folder, options.seconds, options.seed, options.rate)
        print("\n".join(lines(found)))
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
