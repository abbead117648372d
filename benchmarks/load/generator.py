"""Generator: the interface of load generators, and their results."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.exchange import Exchange

GRACE_S = 60.0  # after the measured time, for running requests and large tensors


class Failed(Exception):
    """Error of a load generator that has failed, or whose output cannot be parsed."""


@dataclass(frozen=True)
class Target:
    """The server under load.

    answer_sizes   size of the right response's body to each request of an Exchange; a shorter response is an
                   error
    """

    http_port: int
    grpc_port: int
    answer_sizes: Sequence[int]


@dataclass(frozen=True)
class Load:
    """The result of one run of a generator.

    requests   requests with the right response
    errors     requests that were refused or failed, or got another status or size
    """

    requests: int
    errors: int
    seconds: float
    p50_us: float
    p99_us: float


class Generator(Protocol):
    """A program that sends requests for some seconds."""

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
    """Run a program pinned to `core` and return its standard output. Raises Failed."""
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
