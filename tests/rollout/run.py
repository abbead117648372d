"""The phases: a rollout from 1 to 100 %, copies to two versions, a rollback."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from soak.server import Server

from rollout.judge import Found, judge_copies, judge_failures, judge_rate, judge_share, sums_of
from rollout.load import Load, Seen
from rollout.models import BAD, DIFFERENCE, EQUAL, ERROR, PLACE, PLANTED, write_models

PERCENTS = (1, 5, 25, 50, 100)
ROLLBACK_S = 5.0
AFTER_S = 2.0  # of requests after the rollback
PHASES = len(PERCENTS) + 3  # steps, copies to two versions, a rollback


class Run:
    """A server under load. `found` has what was seen.

    rate      requests per second, as the load sends them
    seconds   of each phase
    """

    def __init__(self, port: int, load: Load, rate: float, seconds: float):
        self._rate = rate
        self.found = Found()
        self._port, self._load, self._seconds = port, load, seconds

    async def all(self) -> Found:
        """Run all phases one after the other."""
        await self.roll_out(PERCENTS)
        for version, expected in ((EQUAL, "equal"), (PLANTED, "differing")):
            await self._copies(version, expected)
        await self._rollback()
        return self.found

    async def _call(self, value: Any = None) -> Any:
        return await asyncio.to_thread(traffic, self._port, value)

    async def roll_out(self, percents: Sequence[int]) -> None:
        """Give version EQUAL larger and larger shares under one load; each must be met.

        An answer belongs to a step if its request was sent after the call that sets the weights has
        returned, and if it came before the next call. Those on the way at a change may have either weight.
        """
        steps: list[tuple[float, float]] = []

        async def walk() -> None:
            for percent in percents:
                await self._call({"weights": {"1": 100 - percent, str(EQUAL): percent}})
                begun = time.monotonic()
                await asyncio.sleep(self._seconds)
                steps.append((begun, time.monotonic()))

        seen = await self._load.during(walk())
        for percent, (begun, ended) in zip(percents, steps, strict=True):
            versions, due = seen.between(begun, ended), self._rate * (ended - begun)
            total = versions.total()
            judge_share(self.found, f"{percent} %", versions[EQUAL], total, percent / 100, due)
        self.found.facts["rollout"] = f"{seen.answers} answers; {_shown(seen)}"
        self._judge("rollout", seen)

    def _judge(self, name: str, seen: Seen) -> None:
        """Check what holds in each phase: the rate, and right answers to all requests."""
        judge_rate(self.found, name, seen.rate, self._rate)
        judge_failures(self.found, name, seen.failures)

    async def _copies(self, version: int, expected: str) -> None:
        """Copy each request to a version; all must be counted as expected."""
        shadow = {"version": version, "in_flight": 256, "rtol": 1e-7}
        await self._call({"weights": {"1": 1}, "shadow": shadow})
        seen = await self._load.send(self._seconds)
        while True:
            report = await self._call()
            (counts,) = (each for each in report["shadows"] if each["version"] == version)
            if not counts["in_flight"]:
                break
            await asyncio.sleep(0.1)
        name = f"copies to version {version}"
        largest = counts["largest_difference"]
        self.found.facts[name] = (
            f"{sums_of(counts)}, largest difference {largest:.3g}; callers: {_shown(seen)}"
        )
        self._judge(name, seen)
        judge_copies(self.found, name, counts, seen.answers, expected)
        if expected == "differing":
            places = {tuple(each.get("index", ())) for each in counts["differences"]}
            self.found.must(places == {(PLACE,)}, f"{name}: found at {places}")
            self.found.must(abs(largest - DIFFERENCE) < DIFFERENCE / 10, f"{name}: {largest}")

    async def _rollback(self) -> None:
        """Give the version that fails a tenth of the requests; it must be out within ROLLBACK_S."""
        objective = {"error_rate": 0.05, "min_requests": 20, "to": 1}
        load = asyncio.create_task(self._load.send(max(self._seconds, 2 * ROLLBACK_S)))
        await asyncio.sleep(1)
        await self._call({"weights": {"1": 90, str(BAD): 10}, "rollback": objective})
        begun = time.monotonic()
        while (report := await self._call())["source"] != "rollback":
            if time.monotonic() > begun + 2 * ROLLBACK_S:
                break
            await asyncio.sleep(0.05)
        seconds = time.monotonic() - begun
        seen = await load
        reason = report["rollbacks"][-1]["reason"] if report["rollbacks"] else "never"
        self.found.facts["rollback"] = (
            f"after {seconds:.2f} s ({reason}); {len(seen.failures)} of "
            f"{seen.answers + len(seen.failures)} requests failed; {_shown(seen)}"
        )
        self.found.must(seconds < ROLLBACK_S, f"rollback: after {seconds:.2f} s")
        judge_rate(self.found, "rollback", seen.rate, self._rate)
        judge_failures(self.found, "rollback", seen.failures, planted=ERROR)
        after = await self._load.send(AFTER_S)
        self.found.must(set(after.versions) == {1}, f"after the rollback: {after.versions}")
        self._judge("after the rollback", after)


@contextmanager
def serving(folder: Path, workers: int) -> Iterator[Server]:
    """Serve the model of the proof, from an empty folder, until the block ends."""
    (folder / "models").mkdir()
    write_models(folder / "models")
    server = Server(folder, *([f"--workers={workers}"] if workers > 1 else []))
    try:
        _await_ready(server)
        yield server
    except Exception:
        print(server.last_words())
        raise
    finally:
        server.kill()


def run(folder: Path, rate: float, seconds: float, connections: int, workers: int) -> Found:
    """Run all phases against a server of its own, in an empty folder; return what was found.

    seconds   of all phases together
    """
    with serving(folder, workers) as server:
        load = Load(server.ports.http, rate, connections, seed=1)
        phase = max(1.0, seconds / PHASES)
        found = asyncio.run(Run(server.ports.http, load, rate, phase).all())
        server.signal()
        found.must(server.process.wait(60) == 0, f"the server ended: {server.process.returncode}")
    return found


def traffic(port: int, value: Any = None) -> Any:
    """GET the traffic of the model, or POST it."""
    body = None if value is None else json.dumps(value).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/models/m/traffic", body) as answer:
        return json.loads(answer.read())


def _await_ready(server: Server) -> None:
    end = time.monotonic() + 300
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{server.ports.http}/v2/health/ready").close()
            return
        except OSError:
            if server.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the server is not ready") from None
            time.sleep(0.1)


def _shown(seen: Seen) -> str:
    p50, p99 = np.percentile(seen.latencies, (50, 99)) * 1e3
    return f"{seen.rate:.0f}/s, p50 {p50:.1f} ms, p99 {p99:.1f} ms, {seen.late} sent late"
