"""Generator: what every load generator is, and what it finds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.exchange import Exchange

GRACE_S = 60.0  # beyond its seconds, for the requests in flight and large tensors


class Failed(Exception):
    """A load generator that ended with an error, or whose words cannot be understood."""


@dataclass(frozen=True)
class Target:
    """Who is asked.

    answer_sizes   bytes of the right answer's body to each request of an Exchange: who gets fewer counts
                   an error
    """

    http_port: int
    grpc_port: int
    answer_sizes: Sequence[int]


@dataclass(frozen=True)
class Load:
    """What one run of a generator found.

    requests   answered rightly
    errors     refused, failed, or answered with another status or size than the right one
    """

    requests: int
    errors: int
    seconds: float
    p50_us: float
    p99_us: float


class Generator(Protocol):
    """Sends requests for some seconds."""

    def run(
        self, target: Target, exchange: Exchange, connections: int, seconds: float, folder: Path
    ) -> Load:
        """Send for `seconds` over `connections`; `folder` is for its files. Raises Failed."""
        ...


def output_of(
    command: Sequence[str],
    core: int,
    seconds: float,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Standard output of a program pinned to `core`. Raises Failed."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds + GRACE_S,
            env={**os.environ, **(environment or {})},
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{Path(command[0]).name} did not end in {error.timeout:.0f} s") from error
    if done.returncode:
        raise Failed(
            f"{Path(command[0]).name} ended with {done.returncode}: "
            f"{(done.stderr or done.stdout).strip()[-400:]}"
        )
    return done.stdout
