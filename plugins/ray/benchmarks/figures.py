"""What a way to a model costs: latencies, requests per second, and the processor time of Ray's processes."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from dataclasses import astuple, dataclass
from pathlib import Path

from ways import Ask

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Figures:
    """One round of one way."""

    alone_p50_ms: float
    alone_p99_ms: float
    together_p50_ms: float
    together_p99_ms: float
    rate: float
    per_core: float


async def figures(ask: Ask, number: int, seconds: float) -> Figures:
    """Measure a way with one client, then with a number of them, for so many seconds each."""
    alone_s = await clients(ask, 1, seconds)
    before_s, begun_s = processor_s(), time.perf_counter()
    together_s = await clients(ask, number, seconds)
    taken_s, used_s = time.perf_counter() - begun_s, processor_s() - before_s
    return Figures(
        1000 * quantile(alone_s, 0.5),
        1000 * quantile(alone_s, 0.99),
        1000 * quantile(together_s, 0.5),
        1000 * quantile(together_s, 0.99),
        len(together_s) / taken_s,
        len(together_s) / used_s,
    )


async def clients(ask: Ask, number: int, seconds: float) -> list[float]:
    """Run clients side by side; return the seconds that each response took."""
    end_s, taken_s = time.perf_counter() + seconds, []

    async def client() -> None:
        while (begun_s := time.perf_counter()) < end_s:
            await ask()
            taken_s.append(time.perf_counter() - begun_s)

    await asyncio.gather(*(client() for _ in range(number)))
    return taken_s


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def processor_s() -> float:
    """Return the seconds that all processes below this one have used: those of Ray."""
    parents, used_s = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(folder.name)] = int(fields[1])
        used_s[int(folder.name)] = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    own, total_s = os.getpid(), 0.0
    for process, seconds in used_s.items():
        above = parents[process]
        while above not in (0, own):
            above = parents.get(above, 0)
        total_s += seconds if above == own else 0.0
    return total_s


def medians(rounds: list[Figures]) -> list[float]:
    """Return the median of each field."""
    return [statistics.median(each) for each in zip(*map(astuple, rounds), strict=True)]


def table(found: dict[str, list[float]], clients: int) -> str:
    """Return the ways and their figures as a table of Markdown."""
    many = f"{clients} clients"
    rows = [
        f"| way | p50, 1 client | p99 | p50, {many} | p99 | requests/s, {many} | requests/s per core |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, (*latencies, rate, per_core) in found.items():
        shown = " | ".join(f"{each:.2f} ms" for each in latencies)
        rows.append(f"| {name} | {shown} | {rate:.0f} | {per_core:.0f} |")
    return "\n".join(rows)
