"""The soak: a fleet, its clients, what happens to it, and whether everything held."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from soak.ledger import Ledger, Windows

from router_soak import models
from router_soak.events import Events
from router_soak.fleet import Router, Server
from router_soak.load import Load

SERVERS = 3
WARM_UP_S = 5.0
LEAST_OFFERED = 0.9  # of the rate, in a run of at least
OFFERED_S = 60.0
EVERY_EVENT_S = 120.0  # a run so long has seen each kind of event
MOST_GROWTH_MIB = 32.0  # of the router's memory after the warm-up
RETRIES = ("core_router_retries", "core_router_lost", "core_router_hedges", "core_router_ejections")
AT_REST = ("core_router_in_flight", "core_router_sequences", "core_router_kept_bytes")


@dataclass
class Found:
    """The result of a soak. `problems` is empty if everything held."""

    ledger: Ledger
    events: Counter[str] = field(default_factory=Counter)
    begun_again: int = 0
    seconds: float = 0.0
    resident_mib: tuple[float, float] = (0.0, 0.0)
    counts: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Return the report in Markdown."""
        yield "| requests | offered | right | refused, and why |"
        yield "|---|---:|---:|---|"
        for name, line in sorted(self.ledger.lines.items()):
            why = ", ".join(f"{reason} {count}" for reason, count in line.refused.items())
            yield f"| {name} | {line.offered} | {line.right} | {why} |"
        yield f"| **all** | {self.offered} | {self._right} | |"
        yield ""
        yield f"sequences that began again after the end of their server: {self.begun_again}"
        yield ", ".join(f"{name} {count:g}" for name, count in self.counts.items())
        yield (
            f"memory of the router: {self.resident_mib[0]:.1f} MiB, later {self.resident_mib[1]:.1f} MiB"
        )
        yield ""
        yield f"{len(self.problems)} problems" + (":" if self.problems else "")
        yield from (f"- {text}" for text in self.problems[:100])
        yield ""
        yield self._summary()

    def too_little(self, rate: float) -> Iterator[str]:
        """Return in which ways less has happened than a run of this length must bring."""
        offered_per_s = self.offered / self.seconds
        if self.seconds >= OFFERED_S and offered_per_s < LEAST_OFFERED * rate:
            yield (
                f"{offered_per_s:.0f} requests a second were offered, {rate:g} were wanted: the machine is "
                "too slow for them; choose a lower --rate"
            )
        for name, count in self.events.items():
            if self.seconds >= EVERY_EVENT_S and not count:
                yield f"{name} has not happened in {self.seconds:.0f} s; run it longer"

    @property
    def offered(self) -> int:
        return sum(line.offered for line in self.ledger.lines.values())

    @property
    def _right(self) -> int:
        return sum(line.right for line in self.ledger.lines.values())

    def _summary(self) -> str:
        """Return the result as one line, for a page to quote."""
        refused = sum(sum(line.refused.values()) for line in self.ledger.lines.values())
        events = ", ".join(f"{name} {count}" for name, count in sorted(self.events.items()))
        return (
            f"{self.offered / self.seconds:.0f} requests a second for {self.seconds:.0f} s: "
            f"{self._right} right, {refused} refused as their server ended, "
            f"{len(self.problems)} problems; {events}; answers after "
            f"{self.ledger.latency_ms(0.5):.1f} ms (median), {self.ledger.latency_ms(0.99):.0f} ms (99 %)"
        )


async def run(folder: Path, seconds: float, rate: float, seed: int, options: list[str]) -> Found:
    """Run a soak. options: further ones of the router."""
    repository = folder / "models"
    models.write(repository)
    servers = [Server(folder, number, repository) for number in range(SERVERS)]
    router = Router(folder, servers, *options)
    try:
        for each in servers:
            await router.until_ready(each.name)
        return await _under_load(router, servers, seconds, rate, seed)
    finally:
        for program in (router, *servers):
            program.kill()


async def _under_load(
    router: Router, servers: list[Server], seconds: float, rate: float, seed: int
) -> Found:
    windows = Windows()
    load = Load(router, Ledger(windows), rate, seed)
    found = Found(load.ledger)
    events = Events(router, servers, windows, seed)
    begin_s = time.monotonic()
    offering = asyncio.create_task(load.offer())
    await asyncio.sleep(WARM_UP_S)
    before_mib = router.resident_mib()
    await events.run(begin_s + seconds)
    await asyncio.sleep(1)
    found.seconds = time.monotonic() - begin_s
    await load.settle()
    await offering
    found.resident_mib = before_mib, router.resident_mib()
    found.events, found.begun_again = events.done, load.begun_again
    found.counts = {name: await router.metric(name) for name in RETRIES}
    rest = {name: await router.metric(name) for name in AT_REST}
    found.problems += found.too_little(rate)
    found.problems += events.failed
    found.problems += [f"wrong: {text}" for text in load.ledger.wrong]
    found.problems += [f"lost: {text}" for text in load.ledger.lost()]
    found.problems += [f"answered twice: {text}" for text in load.ledger.twice]
    found.problems += [f"nobody asked for it: {text}" for text in await load.close()]
    found.problems += [f"{name} is {value:g} at the end" for name, value in rest.items() if value]
    if found.resident_mib[1] - before_mib > MOST_GROWTH_MIB:
        found.problems.append("the memory of the router has grown")
    router.signal(signal.SIGTERM)
    if (status := await router.ended(40)) != 0:
        found.problems.append(f"the router after SIGTERM: {status}; {router.last_words()}")
    return found
