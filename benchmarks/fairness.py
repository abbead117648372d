"""Measure what a flood costs another caller: python -m benchmarks.fairness [--seconds S]

Runs examples/fairness/flood.py against a server without fair shares, and against one with them. The exit
status is 1 if, with fair shares, the p99 of the light caller beside the flood is more than twice that alone,
or if it is not without them: then the flood was no flood.
"""

from __future__ import annotations

import argparse
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "fairness"
START_S = STOP_S = 30.0
ARRIVAL, FAIR = "in order of arrival", "fair shares"
FLAGS = {ARRIVAL: (), FAIR: ("--fair=*", "--fair-header=x-user")}
MOST = 2.0  # times that the p99 beside the flood is as long as alone, with fair shares


@contextmanager
def _server(flags: Sequence[str]) -> Iterator[str]:
    """Serve the model of the example; yield the address of its HTTP port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "core.serve", f"--model-repository={EXAMPLE / 'models'}"),
        *(f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false", *flags),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await_ready(process, port)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(STOP_S)


def _await_ready(process: subprocess.Popen[bytes], port: int) -> None:
    end_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < end_s:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready"):
                return
        except OSError:
            time.sleep(0.1)
    sys.exit(
        "the server does not start; run it by hand to see why: core-serve --model-repository=…"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fairness")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each of four measurements")
    seconds = parser.parse_args(arguments).seconds
    ratios = {}
    for name, flags in FLAGS.items():
        with _server(flags) as address:
            done = subprocess.run(
                [sys.executable, EXAMPLE / "flood.py", address, str(seconds)],
                capture_output=True,
                text=True,
            )
        if done.stderr or done.returncode not in (0, 1):
            sys.exit(f"{name}: flood.py ended with {done.returncode}: {done.stderr}")
        print(f"{name}:\n{done.stdout}")
        found = re.search(r"([0-9.]+) times", done.stdout)
        assert found is not None
        ratios[name] = float(found[1])
    wrong = problems(ratios)
    for each in wrong:
        print(f"PROBLEM {each}")
    return int(bool(wrong))


def problems(ratios: Mapping[str, float]) -> list[str]:
    """Return what the ratios of the p99 beside a flood to that alone show wrong; empty if nothing."""
    found = []
    if (fair := ratios[FAIR]) > MOST:
        found.append(f"{FAIR}: {fair:.2f} times that alone, expected {MOST:g} at most")
    if (unfair := ratios[ARRIVAL]) <= MOST:
        found.append(
            f"{ARRIVAL}: {unfair:.2f} times that alone, expected more than {MOST:g}: the flood was no flood"
        )
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
