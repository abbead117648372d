"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import machine
from benchmarks.cache import CACHE, default_cache
from benchmarks.load import PROTOCOLS
from benchmarks.scenarios import SCENARIOS
from benchmarks.servers import KINDS

# Defaults of the command line; the short form takes under ten minutes.
SHORT = {
    "scenario": ["identity", "identity_mixed", "add_sub_mixed", "mlp", "three_steps"],
    "protocol": ["http-json", "http-binary", "grpc"],
    "connections": [1, 16],
    "rounds": 3,
    "seconds": 1.0,
    "starts": 3,
}
FULL = {
    "scenario": list(SCENARIOS),
    "protocol": list(PROTOCOLS),
    "connections": [1, 4, 16, 64],
    "rounds": 5,
    "seconds": 2.0,
    "starts": 5,
}


@dataclass(frozen=True)
class Options:
    """The options of a run. `starts` 0 skips start-up and memory."""

    scenario: Sequence[str]
    protocol: Sequence[str]
    connections: Sequence[int]
    server: Sequence[str]
    rounds: int
    seconds: float
    starts: int
    server_core: int
    load_core: int
    cache: Path
    output: Path


def parse(arguments: Sequence[str]) -> Options:
    """Parse the command line; end the process with a message for invalid arguments."""
    parser = _parser()
    chosen = vars(parser.parse_args(arguments))
    preset = FULL if chosen.pop("full") else SHORT
    for name, value in preset.items():
        if chosen[name] is None:
            chosen[name] = value
    allowed = os.sched_getaffinity(0)
    for name in ("server_core", "load_core"):
        if chosen[name] not in allowed:
            parser.error(
                f"--{name.replace('_', '-')} {chosen[name]}: this process may use "
                f"{', '.join(map(str, sorted(allowed)))}"
            )
    return Options(**chosen)


def _parser() -> argparse.ArgumentParser:
    server_core, load_core = machine.two_cores()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="This server beside others, in one run on one machine.",
    )
    add = parser.add_argument
    add("--full", action="store_true", help="everything, over an hour; without it a short form")
    add("--scenario", nargs="+", choices=list(SCENARIOS), metavar="NAME", help=_of(SCENARIOS))
    add("--protocol", nargs="+", choices=PROTOCOLS, metavar="NAME", help=_of(PROTOCOLS))
    add("--connections", nargs="+", type=_count, metavar="N")
    add(
        "--server",
        nargs="+",
        choices=list(KINDS),
        default=list(KINDS),
        metavar="NAME",
        help=_of(KINDS),
    )
    add("--rounds", type=_count, help="how often every server has its turn")
    add("--seconds", type=_seconds, help="of one server in one round")
    add("--starts", type=_count_or_none, help="for start-up time and memory; 0 for none")
    add("--server-core", type=int, default=server_core, help="where servers run")
    add("--load-core", type=int, default=load_core, help="where load generators run")
    add(
        "--cache",
        type=Path,
        default=default_cache(),
        help=f"folder for other servers and for what is compiled (${CACHE}; %(default)s)",
    )
    add("--output", type=Path, default=Path("benchmark.json"), help="JSON file (%(default)s)")
    return parser


def _of(names: Sequence[str] | dict[str, object] | object) -> str:
    return f"of: {', '.join(names)}"  # type: ignore[arg-type]


def _count(text: str) -> int:
    number = _count_or_none(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _count_or_none(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1.0 <= number <= 3600.0:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 to 3600")
    return number
