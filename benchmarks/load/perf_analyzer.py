"""PerfAnalyzer: load by Triton's perf_analyzer, if $PERF_ANALYZER names the program.

It generates the inputs and does not count all of its requests, so the server's statistics count them. Its
libraries are expected in `lib` beside its `bin`.
"""

from __future__ import annotations

import csv
import json
import os
import time
import urllib.request
from pathlib import Path

from benchmarks.exchange import Exchange
from benchmarks.load.generator import Failed, Load, Target, output_of
from benchmarks.missing import Missing

VARIABLE = "PERF_ANALYZER"
WINDOWS = 3  # measurement windows whose average it reports
MOST_WINDOWS = 10


class PerfAnalyzer:
    """The generator. Raises Missing if the variable names no program."""

    def __init__(self, core: int, transport: str):
        self._core = core
        self._transport = transport
        self._program = os.environ.get(VARIABLE, "")
        if not os.access(self._program, os.X_OK):
            raise Missing(
                f"{VARIABLE}={self._program!r} names no program; wheels of tritonclient 2.41 to "
                "2.51 carry one"
            )

    def run(
        self, target: Target, exchange: Exchange, connections: int, seconds: float, folder: Path
    ) -> Load:
        model = exchange.models[0]
        port = target.http_port if self._transport == "http" else target.grpc_port
        table = folder / "perf_analyzer.csv"
        shapes = [
            f"--shape={name}:{','.join(map(str, _dims(array.shape)))}"
            for name, array in exchange.samples[0].inputs.items()
        ]
        command = [self._program, "-m", model, "-i", self._transport, "-u", f"127.0.0.1:{port}"]
        command += [*shapes, f"--concurrency-range={connections}", "-f", str(table)]
        # The windows need not agree: this benchmark compares rounds.
        command += ["-p", str(max(500, int(seconds * 1000 / WINDOWS)))]
        command += ["-r", str(MOST_WINDOWS), "-s", "999", "--percentile=99"]
        before, start = _answered(target, model), time.monotonic()
        output_of(command, self._core, seconds * 4, {"LD_LIBRARY_PATH": self._libraries()})
        took, after = time.monotonic() - start, _answered(target, model)
        return read(table.read_text(), after[0] - before[0], after[1] - before[1], took)

    def _libraries(self) -> str:
        beside = Path(self._program).parent.parent / "lib"
        return os.pathsep.join(filter(None, [str(beside), os.environ.get("LD_LIBRARY_PATH")]))


def _dims(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape without the batch dimension, which samples with two dimensions have."""
    return shape[1:] if len(shape) > 1 else shape


def _answered(target: Target, model: str) -> tuple[int, int]:
    """Return the numbers of requests that the server has answered and failed so far."""
    url = f"http://127.0.0.1:{target.http_port}/v2/models/{model}/stats"
    with urllib.request.urlopen(url, timeout=30) as answer:
        statistics = json.load(answer)["model_stats"][0]["inference_stats"]
    return int(statistics["success"]["count"]), int(statistics["fail"].get("count", 0))


def read(table: str, requests: int, errors: int, took_s: float) -> Load:
    """Parse rate and latencies of perf_analyzer; `seconds` of the result is computed from its rate."""
    rows = list(csv.DictReader(table.splitlines()))
    if not rows or not float(rows[0]["Inferences/Second"]):
        raise Failed(f"perf_analyzer gave no result in {took_s:.1f} s: {table[-400:]}")
    row = rows[0]
    seconds = requests / float(row["Inferences/Second"])
    return Load(requests, errors, seconds, float(row["p50 latency"]), float(row["p99 latency"]))
