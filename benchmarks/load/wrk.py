"""Wrk: HTTP load by wrk. Its script counts statuses; the received bytes show incomplete responses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.exchange import Exchange, Request
from benchmarks.load.generator import Failed, Load, Target, output_of
from benchmarks.missing import program

SCRIPT = Path(__file__).with_suffix(".lua")


class Wrk:
    """The generator. Raises Missing if wrk is not installed."""

    def __init__(self, core: int):
        self._core = core
        self._program = program("wrk", "wrk")

    def run(
        self,
        target: Target,
        exchange: Exchange,
        connections: int,
        seconds: float,
        folder: Path,
        think_ms: int = 0,
    ) -> Load:
        """Send for `seconds`; see Generator. Each client waits `think_ms` on average between requests."""
        manifest = write_manifest(exchange.requests, folder)
        # wrk takes whole seconds only; a shorter time is one second.
        command = [self._program, "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}"]
        command += ["--timeout", "30", "-s", str(SCRIPT), f"http://127.0.0.1:{target.http_port}/"]
        text = output_of([*command, "--", str(manifest), str(think_ms)], self._core, seconds)
        return read(text, target.answer_sizes, connections)


def write_manifest(requests: Sequence[Request], folder: Path) -> Path:
    """Write a line for each request: path, file of the body, then headers and values, separated by tabs."""
    lines = []
    for index, request in enumerate(requests):
        body = folder / f"{index}.body"
        body.write_bytes(request.body)
        headers = [word for pair in request.headers.items() for word in pair]
        lines.append("\t".join([request.path, str(body), *headers]))
    manifest = folder / "requests.txt"
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


def read(text: str, answer_sizes: Sequence[int], connections: int) -> Load:
    """Parse the script's last line: requests, µs, errors, bytes, p50 and p99 in µs."""
    found = re.search(r"^result (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$", text, re.MULTILINE)
    if found is None:
        raise Failed(f"wrk gave no result: {text[-400:]}")
    requests, duration, errors, size, p50, p99 = map(int, found.groups())
    expected = least_bytes(requests, answer_sizes, connections)
    if size < expected:
        raise Failed(f"{requests} answers had {size} bytes, expected at least {expected}")
    return Load(requests - min(errors, requests), errors, duration / 1e6, p50, p99)


def least_bytes(requests: int, answer_sizes: Sequence[int], connections: int) -> int:
    """Return the minimum number of bytes of right responses to so many requests, sent in turn.

    Any of the last requests, one on each connection, may be the ones without a response.
    """
    count = len(answer_sizes)
    if count == 1:
        return requests * answer_sizes[0]
    spread = max(answer_sizes) - min(answer_sizes)
    whole, rest = divmod(requests, count)
    return max(0, whole * sum(answer_sizes) + sum(answer_sizes[:rest]) - connections * spread)
