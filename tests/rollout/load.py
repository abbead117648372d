"""Load: requests at a steady rate, whether answers come or not, over connections that stay open."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field

from rollout.models import ELEMENTS


@dataclass
class Seen:
    """What the clients of one phase have seen.

    versions    version → answers
    times       of each of these answers: when its request was sent, when it came, and its version
    failures    texts of requests without a right answer
    latencies   seconds of each request, from the time at which it was due
    late        requests that were sent more than 100 ms after they were due: the load itself was too slow
    seconds     from the first request until the last answer
    """

    versions: Counter[int] = field(default_factory=Counter)
    times: list[tuple[float, float, int]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    late: int = 0
    seconds: float = 0.0

    @property
    def answers(self) -> int:
        return self.versions.total()

    @property
    def rate(self) -> float:
        """Return requests per second, whatever their answer was."""
        return len(self.latencies) / self.seconds

    def between(self, begun: float, ended: float) -> Counter[int]:
        """Return version → answers, of the requests that were sent and answered between two moments."""
        return Counter(
            number for sent, came, number in self.times if begun <= sent and came <= ended
        )


class Load:
    """Sends requests with random numbers, and checks that each answer is 2 x within 0.01. Event loop only.

    rate   requests per second, of all connections together
    """

    def __init__(self, port: int, rate: float, connections: int, seed: int):
        self._port, self._rate, self._connections = port, rate, connections
        self._random = random.Random(seed)

    async def send(self, seconds: float) -> Seen:
        """Send requests for some seconds; return what was seen when all are answered."""
        return await self.during(asyncio.sleep(seconds))

    async def during(self, work: Coroutine[object, object, None]) -> Seen:
        """Send requests while some work is done; return what was seen when all are answered."""
        seen = Seen()
        due: asyncio.Queue[float | None] = asyncio.Queue()
        clients = [asyncio.create_task(self._client(due, seen)) for _ in range(self._connections)]
        begun = time.monotonic()
        task = asyncio.create_task(work)
        for number in itertools.count():
            at = begun + number / self._rate
            if (pause := at - time.monotonic()) > 0:  # else it is behind, and first catches up
                if task.done():
                    break
                await asyncio.sleep(pause)
            due.put_nowait(at)
        for _ in clients:
            due.put_nowait(None)
        await asyncio.gather(*clients)
        seen.seconds = time.monotonic() - begun
        await task
        return seen

    async def _client(self, due: asyncio.Queue[float | None], seen: Seen) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while (at := await due.get()) is not None:
            seen.late += time.monotonic() - at > 0.1
            x = [self._random.randrange(1000) / 8 for _ in range(ELEMENTS)]
            sent = time.monotonic()
            writer.write(_request(x))
            status, answer = await _answer(reader)
            came = time.monotonic()
            seen.latencies.append(came - at)
            if status != 200:
                seen.failures.append(f"{status} {answer}")
                continue
            version = int(answer["model_version"])
            seen.versions[version] += 1
            seen.times.append((sent, came, version))
            (y,) = (each["data"] for each in answer["outputs"])
            if any(abs(b - 2 * a) > 0.01 for a, b in zip(x, y, strict=True)):
                seen.failures.append(f"{x} gave {y}")
        writer.close()


def _request(x: list[float]) -> bytes:
    tensor = {"name": "x", "datatype": "FP32", "shape": [ELEMENTS], "data": x}
    body = json.dumps({"inputs": [tensor]}).encode()
    head = f"POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _answer(reader: asyncio.StreamReader) -> tuple[int, dict]:
    """Return status and JSON of one response."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    length = next(int(line.split(":")[1]) for line in head if line.startswith("content-length:"))
    return int(head[0].split()[1]), json.loads(await reader.readexactly(length))
