"""Measure the time to readiness and the idle memory of new processes, server by server in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import processes
from benchmarks.report.result import Footprint
from benchmarks.servers.kind import Kind
from benchmarks.servers.running import NotStarted, running

FLEETS = ("one", "python", "many")
SETTLE_S = 1.0  # pause after readiness: the server returns memory of its start-up meanwhile
MIB = 2**20


def footprints(
    kinds: Sequence[Kind],
    starts: int,
    folder: Path,
    core: int,
    leave_out: Callable[[str, Exception], None],
) -> list[Footprint]:
    """Return one entry for each fleet and server that can serve it, with `starts` values each."""
    found = []
    for fleet in FLEETS:
        able = [kind for kind in kinds if fleet in kind.fleets]
        values: dict[str, list[tuple[float, float, float]]] = {kind.name: [] for kind in able}
        for number in range(starts):
            for kind in able:
                try:
                    values[kind.name].append(
                        _one(kind, fleet, folder / f"{fleet}-{number}" / kind.name, core)
                    )
                except NotStarted as error:
                    leave_out(f"start of {kind.name} with '{fleet}'", error)
        for name, each in values.items():
            if each:
                ready_s, pss, alone = (list(column) for column in zip(*each, strict=True))
                found.append(Footprint(fleet, name, ready_s, pss, alone))
    return found


def _one(kind: Kind, fleet: str, folder: Path, core: int) -> tuple[float, float, float]:
    """Return (seconds to readiness, PSS in MiB, MiB if alone) of one start."""
    with running(kind, fleet, folder, core) as server:
        time.sleep(SETTLE_S)
        return (
            round(server.ready_s, 4),
            round(processes.pss_bytes(server.pid) / MIB, 2),
            round(processes.alone_bytes(server.pid) / MIB, 2),
        )
