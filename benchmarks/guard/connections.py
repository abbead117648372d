"""Connections without sockets: the frontends' own protocols under a transport that only keeps the bytes.

bytes of a request ─► [connection] ─► bytes of its answer.  What is counted between the two is all that a
request costs, but for the kernel and the event loop's own reading and writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from benchmarks.exchange import GRPC_PATH, JSON_SIZE, Exchange, read_grpc, read_http
from benchmarks.guard import frames
from benchmarks.models.sample import Arrays
from core.account import Share
from core.server import Server
from frontends.grpc import transport as grpc_options
from frontends.grpc.engine_native import _Protocol
from frontends.grpc.intake import Intake
from frontends.grpc.native.port import Port as GrpcPort
from frontends.grpc.table import methods
from frontends.http.native.lane import Lane
from frontends.http.native.port import Port as HttpPort


class Written(asyncio.Transport):
    """Keeps what is written, until somebody takes it.

    count   writes, one for each answer of a connection that has one request in flight
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._last: bytes | list[Any] = b""

    def write(self, data: Any) -> None:
        self.count += 1
        self._last = data

    def writelines(self, data: Iterable[Any]) -> None:
        self.count += 1
        self._last = list(data)

    def take(self) -> bytes:
        """The bytes of the last write."""
        last, self._last = self._last, b""
        return last if isinstance(last, bytes) else b"".join(map(bytes, last))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class HttpClients:
    """`connections` clients that send the request of an Exchange again and again. Loop thread."""

    def __init__(self, server: Server, asked: Exchange, connections: int):
        request = asked.requests[0]
        fields = {"Host": "localhost:8000", **request.headers, "Content-Length": len(request.body)}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._bytes = f"POST {request.path} HTTP/1.1\r\n{head}\r\n".encode() + request.body
        port = HttpPort(
            server,
            asyncio.get_running_loop(),
            guest=_no_guest,
            opened=_nobody,
            lost=_nobody,
            keep_alive_s=3600.0,
        )
        self.transports = [Written() for _ in range(connections)]
        self._lanes = [Lane(port) for _ in range(connections)]
        for lane, transport in zip(self._lanes, self.transports, strict=True):
            lane.connection_made(transport)

    def prepare(self, requests: int) -> None:
        """Nothing: each request of a connection is like the one before it."""

    def ask(self) -> None:
        """One request on each connection."""
        data = self._bytes
        for lane in self._lanes:
            lane.data_received(data)

    def close(self) -> None:
        for lane in self._lanes:
            lane.connection_lost(None)

    @staticmethod
    def read(answer: bytes) -> Arrays:
        """The tensors in the bytes of an answer."""
        head, body = answer.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 200 "), answer
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        size = fields.get(JSON_SIZE)
        return read_http(body, None if size is None else int(size))


class GrpcClients:
    """The same over the engine on nghttp2."""

    def __init__(self, server: Server, asked: Exchange, connections: int):
        self._message = asked.requests[0].body
        options = server.options
        table = methods(server, Intake())
        port = GrpcPort(
            {GRPC_PATH: table[GRPC_PATH]},
            options,
            asyncio.get_running_loop(),
            grpc_options.compression_level(options),
            grpc_options.MOST_MESSAGE_BYTES,
            server.account,
        )
        self.transports = [Written() for _ in range(connections)]
        self._protocols = [_Protocol(port) for _ in range(connections)]
        for protocol, transport in zip(self._protocols, self.transports, strict=True):
            protocol.connection_made(transport)
            _receive(protocol, frames.opening())
            transport.count = 0
        self._numbers: Iterator[int] = count(1, 2)  # each stream of a connection has its own
        self._calls: Iterator[bytes] = iter(())

    def prepare(self, requests: int) -> None:
        """Make the bytes of so many requests for each connection; whatever was made before is gone."""
        numbers = [next(self._numbers) for _ in range(requests)]
        calls = [frames.call(number, self._message, first=number == 1) for number in numbers]
        self._calls = iter(calls)

    def ask(self) -> None:
        """One request on each connection."""
        data = next(self._calls)
        for protocol in self._protocols:
            _receive(protocol, data)

    def close(self) -> None:
        for protocol in self._protocols:
            protocol.connection_lost(None)

    @staticmethod
    def read(answer: bytes) -> Arrays:
        """The tensors in the bytes of an answer."""
        return read_grpc(frames.messages(answer)[0])


Clients = HttpClients | GrpcClients


def _receive(protocol: _Protocol, data: bytes) -> None:
    protocol.get_buffer(-1)[: len(data)] = data
    protocol.buffer_updated(len(data))


def _no_guest(share: Share) -> Any:
    raise AssertionError("the request is none for the fast lane")


def _nobody(*_: object) -> None:
    """In the place of who counts connections."""
