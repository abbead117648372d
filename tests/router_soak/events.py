"""What happens to the servers while requests come: one thing at a time."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter

from soak.ledger import Windows

from router_soak.fleet import Router, Server, ask

PAUSE_S = (1.0, 3.0)  # between two of them
DOWN_S = (0.2, 2.0)  # from the end of a server to its start
DRAINED_S = 30.0  # in which a drained server is idle


class Events:
    """Changes of one fleet, in random order. Loop thread.

    done     how often each has happened, also those that have not
    failed   those that did not do what they must
    """

    def __init__(self, router: Router, servers: list[Server], windows: Windows, seed: int) -> None:
        self._every = [self.kill, self.end, self.drain, self.load_again, self.unload_on_one]
        self.done = Counter({each.__name__: 0 for each in self._every})
        self.failed: list[str] = []
        self._router, self._servers, self._windows = router, servers, windows
        self._chosen = random.Random(seed)

    async def run(self, end_s: float) -> None:
        """Have things happen until that time of the monotonic clock."""
        while time.monotonic() < end_s:
            self._chosen.shuffle(self._every)
            for each in self._every:
                await asyncio.sleep(self._chosen.uniform(*PAUSE_S))
                if time.monotonic() >= end_s:
                    return
                await each(self._chosen.choice(self._servers))
                self.done[each.__name__] += 1

    async def kill(self, server: Server) -> None:
        """SIGKILL: connections end within requests and responses."""
        with self._windows.open("server ends"):
            server.kill()
            await self._begin(server)

    async def end(self, server: Server) -> None:
        """SIGTERM: the server refuses new requests, and answers those that it has."""
        with self._windows.open("server ends"):
            server.signal(signal.SIGTERM)
            await self._must_end(server)
            await self._begin(server)

    async def drain(self, server: Server) -> None:
        """Take a server out by the router: not even a sequence may notice."""
        await self._router.operate(f"/servers/{server.name}/drain", "POST")
        until_s = time.monotonic() + DRAINED_S
        while time.monotonic() < until_s:
            found = await self._router.server(server.name)
            if not found["in_flight"] and not found["sequences"]:
                break
            await asyncio.sleep(0.05)
        else:
            self.failed.append(f"drain: {server.name} is not idle after {DRAINED_S:g} s: {found}")
        server.signal(signal.SIGTERM)
        await self._must_end(server)
        await self._begin(server)
        await self._router.operate(f"/servers/{server.name}/resume", "POST")

    async def load_again(self, server: Server) -> None:
        """Load a model again on all servers at once, through the router."""
        await self._load(self._router.ports.http, "plus", "load")

    async def unload_on_one(self, server: Server) -> None:
        """Take a model from one server, and bring it back."""
        await self._load(server.ports.http, "echo", "unload")
        await asyncio.sleep(self._chosen.uniform(*DOWN_S))
        await self._load(server.ports.http, "echo", "load")

    async def _load(self, port: int, model: str, what: str) -> None:
        path = f"/v2/repository/models/{model}/{what}"
        try:
            await asyncio.to_thread(ask, port, path, {}, "POST")
        except OSError as error:
            self.failed.append(f"{what} of {model} at port {port}: {error}")

    async def _must_end(self, server: Server) -> None:
        status = await server.ended(40)
        if status != 0:
            self.failed.append(f"{server.name} after SIGTERM: {status}; {server.last_words()}")
            server.kill()

    async def _begin(self, server: Server) -> None:
        await asyncio.sleep(self._chosen.uniform(*DOWN_S))
        server.begin()
        await self._router.until_ready(server.name)
