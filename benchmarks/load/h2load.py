"""H2load: gRPC load by h2load, HTTP/2 with a fixed frame.

h2load does not read trailers, which contain gRPC's status. An error response has no message, so the size of
the received data shows errors.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.exchange import Exchange, grpc_frame
from benchmarks.load.generator import Failed, Load, Target, output_of
from benchmarks.missing import program
from benchmarks.spread import percentile

FRAME_HEAD = 5  # bytes before each message


class H2load:
    """The generator. Raises Missing if h2load is not installed."""

    def __init__(self, core: int):
        self._core = core
        self._program = program("h2load", "nghttp2-client")

    def run(
        self, target: Target, exchange: Exchange, connections: int, seconds: float, folder: Path
    ) -> Load:
        request = exchange.requests[0]
        body, log = folder / "frame", folder / "h2load.log"
        body.write_bytes(grpc_frame(request.body))
        log.unlink(missing_ok=True)
        # It takes whole seconds only; a shorter time is one second.
        command = [self._program, "-t1", "-m1", f"-c{connections}", f"-D{max(1, round(seconds))}"]
        command += ["-d", str(body), f"--log-file={log}"]
        command += ["-H", "content-type: application/grpc", "-H", "te: trailers"]
        command += [f"http://127.0.0.1:{target.grpc_port}{request.path}"]
        text = output_of(command, self._core, seconds)
        times = [int(line.split("\t")[2]) for line in log.read_text().splitlines()]
        return read(text, times, max(1, round(seconds)), target.answer_sizes[0])


def read(text: str, times_us: list[int], seconds: float, answer_bytes: int) -> Load:
    """Parse h2load's final report; `times_us` are the times in its log."""
    counts = re.search(
        r"^requests: \d+ total, .* (\d+) succeeded, (\d+) failed, (\d+) errored", text, re.MULTILINE
    )
    data = re.search(r"^traffic: .* \((\d+)\) data$", text, re.MULTILINE)
    if counts is None or data is None:
        raise Failed(f"h2load gave no result: {text[-400:]}")
    succeeded, failed, errored = map(int, counts.groups())
    if not succeeded:
        return Load(0, failed + errored, seconds, 0.0, 0.0)
    whole = int(data[1]) // (FRAME_HEAD + answer_bytes)
    answered = min(succeeded, whole)
    errors = failed + errored + succeeded - answered
    return Load(answered, errors, seconds, percentile(times_us, 50), percentile(times_us, 99))
