"""`python -m tests.fuzz.hostile --requests 200000 --seed 1`: every path and engine, one table."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the package `conformance` is

from conformance.launcher import Launcher

from .campaign import begins_again, over_grpc, over_http, table

MODELS = ["plain", "add_sub", "faulty", "params_echo"]
PAIRS = [("auto", "auto"), ("aiohttp", "grpcio")]
# The server keeps up to 64 MB of freed memory (docs/operate/deploy.md), which would hide what is never freed.
FREED_MEMORY_RETURNS = {"MALLOC_TRIM_THRESHOLD_": str(128 << 10)}


class LaunchSettings:
    """The settings of pytest that a Launcher reads."""

    def __init__(self, lane, engine):
        self._values = {"--server": "core", "--http-lane": lane, "--grpc-engine": engine}

    def getoption(self, name, default=None):
        return self._values.get(name, default)


def main() -> int:
    """Send a quarter of the requests on each path and to each engine; return 1 for findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.hostile", description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000, help="of all campaigns together")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same requests")
    wanted = parser.parse_args()
    found = []
    for lane, engine in PAIRS:
        launcher = Launcher(LaunchSettings(lane, engine))
        try:
            options = ("--model-control-mode=explicit", "--load-model=*")
            server = launcher.start(MODELS, *options, environment=FREED_MEMORY_RETURNS)
            share = wanted.requests // (2 * len(PAIRS))
            found.append(over_http(server, share, wanted.seed, f"HTTP, {lane}"))
            restarts = begins_again(engine)
            found.append(over_grpc(server, share, wanted.seed, f"gRPC, {engine}", restarts))
        finally:
            launcher.stop_all(wait=True)
    print(table(found))
    for each in found:
        for text in each.bad:
            print(f"{each.name}: {text}")
    return int(any(each.bad for each in found))


if __name__ == "__main__":
    sys.exit(main())
