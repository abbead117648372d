"""A soak from the server's start until after its end.

start ─► warm-up ─► idle: resources? ─► the plan ─► idle: equal? ─► SIGTERM ─► leftovers?
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from soak import grpc_client, models
from soak.certificates import Certificates
from soak.changes import RENEWS, Changes
from soak.grpc_client import Stream
from soak.http_client import Closed, Pool
from soak.ledger import Ledger, Windows
from soak.plan import Step, plan
from soak.sequences import PER_SECOND, sequence
from soak.server import EXIT_TIMEOUT_S, START_S, Server
from soak.traffic import (
    TURN_S,
    Clients,
    Facts,
    Kind,
    computes,
    grpc_stream,
    grpc_unary,
    http_json,
    kinds,
    one,
)
from soak.upkeep import Upkeep
from soak.visitors import Visitors

CHANNELS = 4
SAMPLE_S = 1.0
WARM_UP = 0.2  # of the seconds of the plan, before it
END_S = 1.0  # of load before SIGTERM, and after it
QUIET_S = 20.0  # until the resources of all disconnected clients are freed
MOST_THREADS = 12  # more than before: pools start theirs when they are needed
# Of the server's process after the warm-up: the effect of many large requests.
MOST_GROWTH_MIB = 64
MOST_SLOPE_MIB = 3  # a minute, where there are minutes to see it
SLOPE_FROM_S = 600
# A machine that is too slow for the rate gets less, so that answers come in time.
MOST_IN_FLIGHT = 300
TIMERS = "anon_inode:[timerfd]"  # one for each model, made when it first waits for a time


@dataclass
class Rest:
    """The resources of an idle server."""

    descriptors: Counter[str] = field(default_factory=Counter)
    threads: int = 0
    resident_mib: float = 0.0


@dataclass
class Found:
    """The result of a soak.

    problems   found errors; empty for a server that has lost nothing
    """

    ledger: Ledger
    changes: Counter[str]
    visits: Counter[str]
    upkeep: Upkeep
    seconds: float = 0.0
    end_s: float = 0.0
    rest: tuple[Rest, Rest] = field(default_factory=lambda: (Rest(), Rest()))
    problems: list[str] = field(default_factory=list)


class Soak:
    """One of them. Loop thread.

    folder    empty
    seconds   of the plan; the warm-up, the quiet and the end come on top
    rate      requests a second, about
    """

    def __init__(self, folder: Path, seconds: float, seed: int, rate: float) -> None:
        self._seconds = seconds
        self._seed = seed
        (folder / "models").mkdir()
        models.write(folder / "models")
        self._certificates = Certificates(folder / "certificates")
        self._server = Server(
            folder,
            "--model-control-mode=explicit",
            "--load-model=*",
            "--grpc-use-ssl=true",
            f"--grpc-server-cert={self._certificates.certificate}",
            f"--grpc-server-key={self._certificates.key}",
            *(["--reload-secs=2"] if RENEWS else []),
        )
        self._facts, self._windows = Facts(), Windows()
        self._ledger = Ledger(self._windows)
        self._kinds = kinds(self._facts)
        known = sum(kind.per_second for kind in self._kinds) + PER_SECOND * 6
        self._factor = rate / known
        self._tasks: set[asyncio.Task[None]] = set()
        self._due: Counter[str] = Counter()
        self._offering = False

    async def run(self) -> Found:
        try:
            return await self._run()
        finally:
            self._server.kill()

    async def _run(self) -> Found:
        await self._ready()
        server, chosen = self._server, random.Random(self._seed)
        channels = [
            grpc_client.channel(server.ports.grpc, self._certificates.root) for _ in range(CHANNELS)
        ]
        self._clients = Clients(
            Pool(server.ports.http), channels, [Stream(each) for each in channels],
            self._ledger, self._facts, chosen,
        )  # fmt: skip
        self._changes = Changes(server, self._facts, self._windows, self._certificates, chosen)
        self._visitors = Visitors(server, self._clients, self._kinds, self._certificates.root)
        upkeep = Upkeep(server)
        found = Found(self._ledger, self._changes.done, self._visitors.done, upkeep)
        offering = asyncio.create_task(self._offer())
        begin = time.monotonic()

        self._offering = True
        await self._follow(plan(self._seed + 1, self._seconds * WARM_UP), None)
        before = await self._quiet()
        self._offering = True
        await self._follow(plan(self._seed, self._seconds), upkeep)
        after = await self._quiet(before.descriptors)
        self._offering = True
        found.end_s = await self._end(found)
        offering.cancel()
        for task in list(self._tasks):
            task.cancel()  # its requests are lost, and recorded so
        await asyncio.gather(*self._tasks, return_exceptions=True)

        found.seconds = time.monotonic() - begin
        found.rest = (before, after)
        self._judge(found)
        for each in channels:
            await each.close()
        return found

    async def _ready(self) -> None:
        pool = Pool(self._server.ports.http)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._server.alive():
            try:
                if (await pool.ask("GET", "/v2/health/ready"))[0] == 200:
                    pool.close()
                    return
            except Closed:
                pass
            await asyncio.sleep(0.1)
        raise RuntimeError(f"the server is not ready: {self._server.last_words()}")

    # load -----------------------------------------------------------------------

    async def _offer(self) -> None:
        """So many of each kind a second, whether or not the server keeps up."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(TURN_S)
            now = time.monotonic()
            passed_s, last = now - last, now
            if self._offering and self._ledger.in_flight < MOST_IN_FLIGHT:
                self._offer_for(passed_s * self._factor)

    def _offer_for(self, seconds: float) -> None:
        for kind in self._kinds:
            self._due[kind.name] += kind.per_second * seconds  # type: ignore[assignment]
            while self._due[kind.name] >= 1:
                self._due[kind.name] -= 1
                self._do(one(self._clients, kind))
        self._due["sequences"] += PER_SECOND * seconds  # type: ignore[assignment]
        while self._due["sequences"] >= 1:
            self._due["sequences"] -= 1
            self._do(sequence(self._clients))

    def _do(self, work: object) -> None:
        task = asyncio.ensure_future(self._safely(work))  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _safely(self, work: object) -> None:
        try:
            await work  # type: ignore[misc]
        except Exception as error:
            self._ledger.wrong.append(f"the soak itself: {type(error).__name__}: {error}")

    async def _follow(self, steps: list[Step], upkeep: Upkeep | None) -> None:
        """Run the steps at their times, concurrently with running ones."""
        begin = time.monotonic()
        next_look = 0.0
        for step in steps:
            while (wait_s := begin + step.at_s - time.monotonic()) > 0:
                await asyncio.sleep(min(wait_s, 0.1))
                if upkeep is not None and time.monotonic() - begin > next_look:
                    upkeep.look()
                    next_look += SAMPLE_S
            if not self._server.alive():
                raise RuntimeError(f"the server has ended: {self._server.last_words()}")
            change = self._changes.of(step.name) or self._visitors.of(step.name)
            self._do(change())

    async def _settled(self, seconds: float) -> None:
        """Send no new requests, until all sent ones are answered."""
        self._offering = False
        deadline = time.monotonic() + seconds
        while self._tasks and time.monotonic() < deadline:
            await asyncio.sleep(0.05)

    async def _quiet(self, expected: Counter[str] | None = None) -> Rest:
        """Return the resources of the idle server, once they are as expected or the time is over."""
        await self._settled(90)
        await self._changes.as_at_first()
        self._clients.http.close()
        deadline = time.monotonic() + QUIET_S
        last: Counter[str] | None = None
        while time.monotonic() < deadline:
            await asyncio.sleep(1.0)
            found = self._server.descriptors()
            if found == (last if expected is None else expected):
                break
            last = found
        return Rest(found, self._server.threads(), self._server.resident_mib())

    # the end ------------------------------------------------------------------------

    async def _end(self, found: Found) -> float:
        """SIGTERM under load; requests that are under way are answered. Seconds until the end."""
        same = computes(lambda x: x)
        for ask in (
            http_json,
            http_json,
            http_json,
            grpc_unary,
            grpc_unary,
            grpc_stream,
            grpc_stream,
        ):
            kind = Kind("under way at SIGTERM", 0, "slow", ask, same, until_the_end=True)
            self._do(one(self._clients, kind))
        self._do(self._visitors.read_slowly())
        await asyncio.sleep(END_S)
        self._windows.begin("exit")
        begin = time.monotonic()
        self._server.signal()
        await asyncio.sleep(END_S)
        await self._settled(EXIT_TIMEOUT_S + 30)
        while self._server.alive() and time.monotonic() - begin < EXIT_TIMEOUT_S + 10:
            await asyncio.sleep(0.02)
        return time.monotonic() - begin

    def _judge(self, found: Found) -> None:
        ledger, server = self._ledger, self._server
        stray = self._clients.http.stray + [
            text.encode() for stream in self._clients.streams for text in stream.unknown
        ]
        found.problems += self._changes.failed
        found.problems += [f"wrong: {text}" for text in ledger.wrong]
        found.problems += [f"lost: {text}" for text in ledger.lost()]
        found.problems += [f"answered twice: {text}" for text in ledger.twice]
        found.problems += [f"nobody asked for it: {data[:100]!r}" for data in stray]
        before, after = found.rest
        more = after.descriptors - before.descriptors
        del more[TIMERS]
        if more or after.descriptors[TIMERS] > len(list(server.models.iterdir())):
            found.problems.append(f"descriptors that stay: {dict(more)}")
        if after.threads > before.threads + MOST_THREADS:
            found.problems.append(f"threads: {before.threads}, later {after.threads}")
        grown, slope = found.upkeep.grown_mib(), found.upkeep.slope_mib_per_minute()
        if grown > MOST_GROWTH_MIB or (self._seconds >= SLOPE_FROM_S and slope > MOST_SLOPE_MIB):
            found.problems.append(f"memory: {grown:+.1f} MiB, {slope:+.2f} MiB a minute")
        if server.alive() or server.process.returncode:
            found.problems.append(
                f"after SIGTERM: {server.process.poll()}, its last words {server.last_words()}"
            )
        found.problems += [f"left behind: {text}" for text in server.leftovers()]


def soak(folder: Path, seconds: float, seed: int, rate: float) -> Found:
    """Run one, with a separate event loop."""
    return asyncio.run(Soak(folder, seconds, seed, rate).run())
