"""Connections without sockets: the frontends' protocols with a transport that only keeps the bytes.

bytes of a request ─► [connection] ─► bytes of its response.  The count between the two is the whole cost of a
request, without the kernel and the event loop's reading and writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from benchmarks.exchange import JSON_SIZE, Exchange, Request, read_http
from benchmarks.models.sample import Answer
from core.server import InferenceServer
from core.system.account import Share
from frontends.http.native.fast_connection import FastConnection
from frontends.http.native.listener_context import ListenerContext


class Written(asyncio.Transport):
    """Transport that keeps the last write.

    count   number of writes, one for each response of a connection with one running request
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
        """Return the bytes of the last write."""
        last, self._last = self._last, b""
        return last if isinstance(last, bytes) else b"".join(map(bytes, last))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Telling(Written):
    """Transport that also calls a function after each write.

    written   the function
    """

    written: Callable[[], None] = staticmethod(lambda: None)

    def write(self, data: Any) -> None:
        super().write(data)
        self.written()

    def writelines(self, data: Iterable[Any]) -> None:
        super().writelines(data)
        self.written()


class Turns:
    """The order in which connections send the requests of an Exchange.

    With several requests each connection sends another one every time, and all connections together send them
    nearly in turn. With `each_its_own` a connection always sends the same one.
    """

    def __init__(self, requests: int, connections: int, each_its_own: bool):
        self._requests = requests
        self._connections = connections
        # Not the number of connections: each would send requests of the same number of rows only.
        self._step = 0 if each_its_own else connections + (connections > 1)
        self._first = 0

    def next(self) -> list[int]:
        """Return the number of the next request of each connection."""
        first, self._first = self._first, self._first + self._step
        return [(first + each) % self._requests for each in range(self._connections)]


class HttpClients:
    """Clients that repeat the requests of an Exchange. Loop thread.

    transports   one for each client
    asked        numbers of the last requests, one for each client
    """

    def __init__(
        self, server: InferenceServer, asked: Exchange, transports: Sequence[Written], turns: Turns
    ):
        self._bytes = [_http(request) for request in asked.requests]
        self._only = self._bytes[0] if len(self._bytes) == 1 else None
        self._turns = turns
        self._rounds: Iterator[list[int]] = iter(())
        self.asked: Sequence[int] = [0] * len(transports)
        self.transports = transports
        port = ListenerContext(
            server,
            asyncio.get_running_loop(),
            fallback=_no_guest,
            opened=_nobody,
            lost=_nobody,
            keep_alive_s=3600.0,
        )
        self._lanes = [FastConnection(port) for _ in transports]
        for lane, transport in zip(self._lanes, transports, strict=True):
            lane.connection_made(transport)

    def prepare(self, requests: int) -> None:
        """Choose the next `requests` requests of each connection; drop earlier choices."""
        self._rounds = iter([self._turns.next() for _ in range(requests)])

    def ask(self) -> None:
        """Send one request on each connection."""
        if (data := self._only) is not None:  # keep the client's work out of the count
            for lane in self._lanes:
                lane.data_received(data)
            return
        self.asked = next(self._rounds)
        for lane, number in zip(self._lanes, self.asked, strict=True):
            lane.data_received(self._bytes[number])

    def close(self) -> None:
        for lane in self._lanes:
            lane.connection_lost(None)

    @staticmethod
    def read(answer: bytes) -> Answer:
        """Return the content of a response."""
        head, body = answer.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 200 "), answer
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        size = fields.get(JSON_SIZE)
        return read_http(body, None if size is None else int(size))


class Clients(Protocol):
    """Clients of one protocol: HttpClients, and GrpcClients of grpc_connections.py."""

    asked: Sequence[int]
    transports: Sequence[Written]

    def __init__(
        self, server: InferenceServer, asked: Exchange, transports: Sequence[Written], turns: Turns
    ): ...
    def prepare(self, requests: int) -> None: ...
    def ask(self) -> None: ...
    def close(self) -> None: ...
    @staticmethod
    def read(answer: bytes) -> Answer: ...


def _http(request: Request) -> bytes:
    """Return the bytes of a request."""
    fields = {"Host": "localhost:8000", **request.headers, "Content-Length": len(request.body)}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {request.path} HTTP/1.1\r\n{head}\r\n".encode() + request.body


def _no_guest(share: Share) -> Any:
    raise AssertionError("the request is none for the fast lane")


def _nobody(*_: object) -> None:
    """Replace a callback that counts connections."""
