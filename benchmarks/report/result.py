"""Result: all results of one run; a JSON file.

measure ─► [Result] ─► terminal table, Markdown page.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import spread

FORMAT = 1


@dataclass(frozen=True)
class Round:
    """One measurement of a server. cpu_us is the server's CPU time per answered request."""

    requests: int
    errors: int
    seconds: float
    p50_us: float
    p99_us: float
    cpu_us: float

    @property
    def rate(self) -> float:
        """Return responses per second."""
        return self.requests / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Row:
    """All rounds of one server in one cell: scenario, protocol, connections."""

    scenario: str
    protocol: str
    connections: int
    server: str
    rounds: Sequence[Round]

    @property
    def cell(self) -> tuple[str, str, int]:
        return self.scenario, self.protocol, self.connections

    def values(self, measure: str) -> list[float]:
        """Return one value for each round; `measure` is "rate", "cpu_us", "p50_us" or "p99_us"."""
        return [float(getattr(each, measure)) for each in self.rounds]

    def median(self, measure: str) -> float:
        return spread.median(self.values(measure))

    def spread(self, measure: str) -> float:
        return spread.spread(self.values(measure))

    @property
    def errors(self) -> int:
        return sum(each.errors for each in self.rounds)


@dataclass(frozen=True)
class Footprint:
    """Start-up and idle memory of a server with one fleet; one value for each start.

    ready_s      time from the start of the process to readiness
    pss_mib      idle memory: proportional set size of all its processes
    alone_mib    idle memory if no other program mapped the same files
    """

    fleet: str
    server: str
    ready_s: Sequence[float]
    pss_mib: Sequence[float]
    alone_mib: Sequence[float]


@dataclass
class Result:
    """The results of one run.

    missing   skipped measurement → reason
    """

    date: str
    command: str
    machine: Mapping[str, Any]
    versions: dict[str, Mapping[str, str]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    footprints: list[Footprint] = field(default_factory=list)

    def cells(self) -> Iterator[list[Row]]:
        """Yield the rows of each cell, one for each server, in the order of measurement."""
        found: dict[tuple[str, str, int], list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.cell, []).append(row)
        yield from found.values()

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, indent=1)
        path.write_text(text + "\n")


def read(path: Path) -> Result:
    """Read a result. Raises ValueError for a file of another form or version."""
    found = json.loads(path.read_text())
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise ValueError(f"{path} is no result of this benchmark (format {FORMAT})")
    rows = [
        Row(**{**row, "rounds": [Round(**each) for each in row["rounds"]]}) for row in found["rows"]
    ]
    footprints = [Footprint(**each) for each in found["footprints"]]
    return Result(**{**found, "rows": rows, "footprints": footprints})


def against(rows: Sequence[Row], row: Row, other: str, measure: str) -> float | None:
    """Return the ratio of `row` to the row of server `other` in the same cell; None without that row."""
    for each in rows:
        if each.server == other and each.cell == row.cell:
            return spread.ratio(row.values(measure), each.values(measure))
    return None
