"""python -m router_soak: a router before three servers under load; 0 if nothing was lost."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from router_soak.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m router_soak")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=500.0, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave models and logs where they are")
    options, of_router = parser.parse_known_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # no process may stay
    folder = Path(tempfile.mkdtemp(prefix="router-soak-"))
    try:
        found = asyncio.run(run(folder, options.seconds, options.rate, options.seed, of_router))
        print("\n".join(found.lines()))
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
