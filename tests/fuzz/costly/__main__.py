"""`python -m tests.fuzz.costly --seconds 3600 --seed 1`: every path and engine, one table."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the package `conformance` is

from conformance.launcher import Launcher

from tests.fuzz.hostile.__main__ import PAIRS, LaunchSettings

from .measure import Meter
from .search import HEADER, search

MODELS = ["identity"]


def main() -> int:
    """Spend a quarter of the time on each path and engine; return 1 if a server held too much or ended."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.costly", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="of all searches together")
    parser.add_argument("--seed", type=int, default=1, help="the same seed begins in the same way")
    wanted = parser.parse_args()
    failed = False
    print(HEADER)
    for lane, engine in PAIRS:
        launcher = Launcher(LaunchSettings(lane, engine))
        try:
            server = launcher.start(MODELS, "--model-control-mode=explicit", "--load-model=*")
            for protocol, name in (("http", f"HTTP, {lane}"), ("grpc", f"gRPC, {engine}")):
                meter = Meter(server)
                share = wanted.seconds / (2 * len(PAIRS))
                found = search(meter, name, protocol, share, wanted.seed)
                meter.close()
                print("\n".join(found.rows()), flush=True)
                failed = failed or found.holds_too_much or server.process.poll() is not None
        finally:
            launcher.stop_all(wait=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
