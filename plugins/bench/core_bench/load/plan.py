"""WirePlan: what the compiled Loop sends. Generator: what every load generator does."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from core_bench.native.engine import Tally
from core_bench.plan import Level, Pace, Sequences, Side, Timing
from core_bench.wire.request import WireRequest

MOST_CONNECTIONS = 512
_FIRST_CONNECTIONS = 16


class Transport(IntEnum):
    """The numbers are those of settings.hpp, Protocol."""

    HTTP = 0
    GRPC = 1
    GRPC_STREAM = 2


class Answer(IntEnum):
    """What the body of a response is; the numbers are those of settings.hpp."""

    WHOLE = 0
    EVENTS = 1
    CHAT = 2
    CHAT_EVENTS = 3


class Generator(Protocol):
    """Sends load of one level to one server. Calls of `run` do not overlap; call the rest from any thread."""

    def run(self, settle_s: float, measure_s: float, at_least: int) -> tuple[Tally, bool]:
        """Run one round; return what was measured, and False if the server was lost."""

    def stop(self) -> None:
        """End the round as soon as possible."""

    @property
    def progress(self) -> tuple[int, int]:
        """Right answers and errors so far."""


@dataclass(frozen=True)
class WirePlan:
    """See settings.hpp: the fields have the same names there."""

    protocol: Transport
    answer: Answer
    address: str
    port: int
    path: str
    headers: Sequence[tuple[str, str]]
    decoupled: bool
    requests: Sequence[WireRequest]
    streams: Sequence[Sequence[int]]
    sequences: Sequences | None
    pace: Pace = Pace.CLOSED
    rate: float = 0.0
    phase: float = 0.0
    intervals_ns: Sequence[int] = ()
    seed: int = 1
    connections: int = 1
    most_connections: int = 1
    timeout_ns: int = 60_000_000_000

    def at(self, level: Level, timing: Timing, side: Side, number: int) -> WirePlan:
        """Return the plan for one level in round `number`."""
        first, most = connections_of(level, timing, side, self.sequences is not None)
        return dataclasses.replace(
            self,
            pace=level.pace,
            rate=level.value if level.open else 0.0,
            intervals_ns=level.intervals_ns,
            connections=first,
            most_connections=most,
            seed=seed_of(side, number),
            timeout_ns=round(timing.timeout_s * 1e9),
        )

    def split(self, threads: int) -> list[WirePlan]:
        """Return a plan for each thread: a part of the connections, or of the rate."""
        threads = min(threads, self.connections)
        parts = []
        for number in range(threads):
            parts.append(
                dataclasses.replace(
                    self,
                    rate=self.rate / threads,
                    phase=number / threads,  # else the requests of all threads are due at once
                    seed=self.seed + 1000 * number,
                    connections=_part(self.connections, threads, number),
                    most_connections=_part(self.most_connections, threads, number),
                    sequences=_ids(self.sequences, threads, number),
                )
            )
        return parts


def seed_of(side: Side, number: int) -> int:
    """Return the seed of round `number`, far from those of the other rounds and of all threads."""
    return (side.seed + (number << 32)) % 2**63


def connections_of(level: Level, timing: Timing, side: Side, sequences: bool) -> tuple[int, int]:
    """Return how many connections there are at first, and at most."""
    if not level.open:
        return int(level.value), int(level.value)
    if sequences:
        return side.sequences.count, side.sequences.count
    most = timing.connections or MOST_CONNECTIONS
    return min(_FIRST_CONNECTIONS, most), most


def _part(whole: int, parts: int, number: int) -> int:
    return whole // parts + (number < whole % parts)


def _ids(sequences: Sequences | None, parts: int, number: int) -> Sequences | None:
    """Return sequences whose ids no other thread uses."""
    if sequences is None or parts == 1:
        return sequences
    if not sequences.end_id:
        return dataclasses.replace(sequences, first_id=sequences.first_id + (number << 40))
    size = (sequences.end_id - sequences.first_id) // parts
    first = sequences.first_id + number * size
    return dataclasses.replace(sequences, first_id=first, end_id=first + size)
