"""Compare instruction counts with the committed ones: python -m benchmarks.guard [--write] [--lane NAME…]

Each lane runs under callgrind, which counts only while the requests run. Counts depend on interpreter,
libraries and compiler: the baseline records their versions, and counts with other versions are only shown.
They also depend on the addresses of objects, by up to 1 %: each lane runs with several sizes of the
environment, which move the stack and the heap, and its median counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cache import CACHE, default_cache
from benchmarks.compiled import compiled
from benchmarks.guard.lane import LANES, has_engine
from benchmarks.missing import Missing, program

ROOT = Path(__file__).parents[2]
BASELINE = Path(__file__).with_name("baseline.json")
REQUESTS = 960
SOURCE = Path(__file__).with_name("collect.cc")
TOLERANCE = 0.015  # medians of the same code differ by less, with debug symbols or without
PADDINGS = (0, 640, 1500)  # bytes that the environment has more, for each layout of memory
LIMIT_S = 900.0


def made_with() -> dict[str, str]:
    """Return the versions on which counts depend, besides the code."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{name: version(name) for name in ("numpy", "orjson", "uvloop")},
    }


def per_request(lane: str, cache: Path) -> int:
    """Return the instructions of one request: the median of several layouts of memory.

    Raises Missing without valgrind or a compiler.
    """
    valgrind = program("valgrind", "valgrind")
    library = compiled(SOURCE, cache, ["-shared", "-fPIC"])
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return round(median(threads.map(partial(_counted, lane, valgrind, library), PADDINGS)))


def _counted(lane: str, valgrind: str, library: Path, padding: int) -> int:
    with tempfile.TemporaryDirectory(prefix="guard-") as folder:
        command = [valgrind, "--tool=callgrind", "--instr-atstart=no"]
        command += [f"--callgrind-out-file={folder}/out", sys.executable]
        command += ["-m", "benchmarks.guard.lane", lane, str(REQUESTS), str(library)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONHASHSEED": "0",
                "PYTHONMALLOC": "pymalloc",
                "GUARD_PADDING": "x" * padding,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None:
        raise RuntimeError(f"lane {lane} ended with {done.returncode}: {done.stderr[-800:]}")
    return round(int(found[1]) / int(done.stdout))


def verdict(found: int, expected: int | None) -> tuple[str, bool]:
    """Return the text for a count, and whether the count is within the tolerance or better."""
    if expected is None:
        return "no baseline", True
    change = found / expected - 1
    if change > TOLERANCE:
        return f"{change:+.1%}: more than the baseline's {expected:,}", False
    if change < -TOLERANCE:
        return f"{change:+.1%}: better; keep it with --write", True
    return f"{change:+.1%}", True


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard")
    parser.add_argument("--lane", nargs="+", choices=LANES, default=list(LANES))
    parser.add_argument("--write", action="store_true", help="make the counts the baseline")
    parser.add_argument("--cache", type=Path, default=default_cache(), help=f"${CACHE}")
    chosen = parser.parse_args(arguments)
    baseline: dict[str, Any] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    same = baseline.get("made with") == made_with()
    known: Mapping[str, int] = baseline.get("instructions", {})
    if known and not same:
        print(f"the baseline was made with {baseline['made with']}, here is {made_with()}")
    counts, good = dict(known) if same else {}, True
    try:
        for lane in chosen.lane:
            if not has_engine(lane):
                print(f"{lane:13} not counted: gRPC over nghttp2 is not in this installation")
                continue
            counts[lane] = per_request(lane, chosen.cache)
            text, fine = verdict(counts[lane], known.get(lane))
            print(f"{lane:13} {counts[lane]:9,} instructions a request  {text}", flush=True)
            good = good and fine
    except Missing as missing:
        parser.error(str(missing))
    if chosen.write:
        text = json.dumps({"made with": made_with(), "instructions": counts}, indent=1)
        BASELINE.write_text(text + "\n")
        return 0
    return 0 if good or not same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
