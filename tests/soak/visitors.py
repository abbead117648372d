"""Clients that are slow, disconnect, or are too many: a coroutine for each name of the plan.

A client that stays to the end must get the right response; a disconnected one must leave no resources.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable

import grpc.aio
import numpy as np

from soak import grpc_client
from soak.http_client import Closed, Connection, parsed
from soak.ledger import Ledger
from soak.server import Server
from soak.traffic import Clients, Kind, one

BURST = 40  # requests at once, to a queue of eight
LARGE = 2**17  # numbers
PAUSE_S = 0.02  # between the parts of a slow request
PARTS = 40
STREAM = 200  # answers of a stream that is cancelled after some
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: the connection is reset, not closed
PHASES = (
    "before a byte",
    "in the head",
    "in the body",
    "before the answer",
    "in the answer",
    "in the events",
    "in the preface",
)


class Visitors:
    """Loop thread.

    done   how often each was here
    """

    def __init__(self, server: Server, clients: Clients, kinds: list[Kind], root: bytes) -> None:
        self.done: Counter[str] = Counter()
        self._server = server
        self._clients = clients
        self._ledger: Ledger = clients.ledger
        self._chosen = clients.chosen
        self._root = root
        self._crowd = next(kind for kind in kinds if kind.model == "crowded")

    def of(self, name: str) -> Callable[[], Awaitable[None]]:
        """The coroutine of that name."""
        found: Callable[[], Awaitable[None]] = getattr(self, name)
        return found

    async def fill_the_queue(self) -> None:
        await asyncio.gather(*(one(self._clients, self._crowd) for _ in range(BURST)))
        self.done["fill_the_queue"] += 1

    # clients that disconnect ---------------------------------------------------------

    async def leave(self) -> None:
        """A client of HTTP (or of what might have become HTTP/2) goes, by a close or by a reset."""
        phase = self._chosen.choice(PHASES)
        port = self._server.ports.grpc if phase == "in the preface" else self._server.ports.http
        connection = socket.socket()
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        with contextlib.closing(connection), contextlib.suppress(OSError):
            await loop.sock_connect(connection, ("127.0.0.1", port))
            await loop.sock_sendall(connection, self._first_bytes(phase))
            if phase.startswith("in the answer") or phase.startswith("in the events"):
                await asyncio.wait_for(loop.sock_recv(connection, 100), 30)
            elif phase == "before the answer":
                await asyncio.sleep(self._chosen.uniform(0, 0.05))
            if self._chosen.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.done[f"leave {phase}"] += 1

    def _first_bytes(self, phase: str) -> bytes:
        if phase == "before a byte":
            return b""
        if phase == "in the preface":
            return b"PRI * HTTP/2.0\r\n\r\nSM"
        size = LARGE if phase == "in the answer" else 16
        values = list(range(size)) if phase != "before the answer" else [1]
        tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [len(values)], "data": values}
        path, body = "echo/infer", json.dumps({"inputs": [tensor]}).encode()
        if phase == "before the answer":
            path = "slow/infer" if self._chosen.random() < 0.1 else "plus/infer"
        if phase == "in the events":
            path, body = "words/generate_stream", json.dumps({"IN": list(range(STREAM))}).encode()
        head = f"POST /v2/models/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        whole = head.encode() + body
        if phase == "in the head":
            return whole[: self._chosen.randrange(1, len(head))]
        if phase == "in the body":
            return whole[: self._chosen.randrange(len(head), len(whole))]
        return whole

    async def cancel(self) -> None:
        """A call, or a stream after some of its answers; or the whole channel goes."""
        how = self._chosen.choice(["call", "stream", "channel"])
        channel = self._clients.channel()
        if how == "channel":
            channel = grpc_client.channel(self._server.ports.grpc, self._root)
        values = np.arange(STREAM, dtype=np.int32)
        number = self._ledger.begin(f"cancelled {how}")
        try:
            if how == "call":
                call = grpc_client.infer_of(channel)(
                    grpc_client.message("plus", number, [("INPUT0", "INT32", values)])
                )
                await asyncio.sleep(self._chosen.uniform(0, 0.01))
                call.cancel()
                with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
                    await call
            else:
                await self._part_of_a_stream(channel, number, values)
            if how == "channel":
                await channel.close()
        finally:
            self._ledger.give_up(number)
        self.done[f"cancel {how}"] += 1

    async def _part_of_a_stream(
        self, channel: grpc.aio.Channel, number: int, values: np.ndarray
    ) -> None:
        delay, wait = np.full(STREAM, 1, np.uint32), np.zeros(1, np.uint32)
        inputs = [("IN", "INT32", values), ("DELAY", "UINT32", delay), ("WAIT", "UINT32", wait)]
        model = self._chosen.choice(["repeat", "words"])
        request = grpc_client.message(model, number, inputs if model == "repeat" else inputs[:1])
        call = grpc_client.stream_of(channel)()
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
            await call.write(request)
            for _ in range(self._chosen.randint(0, 5)):
                await asyncio.wait_for(call.read(), 30)
            call.cancel()
            await call.read()

    # slow clients ---------------------------------------------------------------------

    async def send_slowly(self) -> None:
        """A request that comes in small parts, the head too."""
        number = self._ledger.begin("slow sender")
        values = self._clients.values(number) * 8
        tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [len(values)], "data": values}
        body = json.dumps({"inputs": [tensor]}).encode()
        head = (
            f"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        whole = head.encode() + body
        step = len(whole) // PARTS + 1

        async def parts(writer: asyncio.StreamWriter) -> None:
            for start in range(0, len(whole), step):
                writer.write(whole[start : start + step])
                await asyncio.sleep(PAUSE_S)

        await self._slow(number, values, parts, 0.0)

    async def read_slowly(self) -> None:
        """An answer of megabytes that is read in small parts."""
        number = self._ledger.begin("slow reader")
        values = list(range(number, number + LARGE))
        tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [len(values)], "data": values}
        body = json.dumps({"inputs": [tensor]}).encode()
        head = (
            f"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        )

        async def at_once(writer: asyncio.StreamWriter) -> None:
            writer.write(head.encode() + body)
            await writer.drain()

        await self._slow(number, values, at_once, PAUSE_S)

    async def _slow(
        self,
        number: int,
        values: list[int],
        send: Callable[[asyncio.StreamWriter], Awaitable[None]],
        pause_s: float,
    ) -> None:
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", self._server.ports.http, limit=2**14
            )
            await send(writer)
            found = bytearray()
            while (answer := parsed(found)) is None:
                part = await reader.read(2**15)
                if not part:
                    raise Closed(f"closed: {len(found)} bytes of the answer had come")
                found += part
                if pause_s:
                    await asyncio.sleep(pause_s)
            writer.close()
        except (OSError, Closed) as error:
            self._ledger.refuse(number, f"closed: {error}", ())
            return
        status, body, size = answer
        if status != 200 or json.loads(body)["outputs"][0]["data"] != values or size != len(found):
            self._ledger.bad(number, f"{status} {body[:200]!r}")
        else:
            self._ledger.right(number)
        self.done["send_slowly" if not pause_s else "read_slowly"] += 1

    # clients that monitor ------------------------------------------------------------

    async def look(self) -> None:
        """Send the requests of dashboards and orchestrators."""
        for method, path, port in (
            ("GET", "/v2/health/live", self._server.ports.http),
            ("GET", "/v2/models/echo/ready", self._server.ports.http),
            ("GET", "/v2/models/stats", self._server.ports.http),
            ("POST", "/v2/repository/index", self._server.ports.http),
            ("GET", "/metrics", self._server.ports.metrics),
        ):
            number = self._ledger.begin(f"{method} {path}")
            try:
                connection = await Connection.open(port)
                status, body = await connection.ask(method, path)
                connection.close()
            except (OSError, Closed) as error:
                self._ledger.refuse(number, f"closed: {error}", ())
                continue
            if status == 200:
                self._ledger.right(number)
            else:
                self._ledger.refuse(number, json.loads(body or b'{"error": ""}')["error"], ())
        self.done["look"] += 1
