"""Connections of HTTP/1.1 that notice whatever comes beside the one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping


class Closed(Exception):
    """The server has closed the connection before the answer was complete."""


class Connection(asyncio.Protocol):
    """A connection for one exchange at a time.

    stray   bytes without a request
    """

    def __init__(self) -> None:
        self.stray = b""
        self.closed = False
        self.transport: asyncio.Transport
        self._buffer = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    @classmethod
    async def open(cls, port: int) -> Connection:
        """Connect. Raises OSError without a listener."""
        loop = asyncio.get_running_loop()
        _, found = await loop.create_connection(cls, "127.0.0.1", port)
        return found

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body. Raises Closed."""
        if self.closed:
            raise Closed("closed: before the request was sent")
        lines = [f"{method} {path} HTTP/1.1", "Host: soak", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.stray += data
            return
        self._buffer += data
        if (found := parsed(self._buffer)) is not None:
            status, body, size = found
            self.stray += bytes(self._buffer[size:])
            self._buffer.clear()
            self._answer.set_result((status, body))

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        if self._answer is not None and not self._answer.done():
            what = f"closed: {len(self._buffer)} bytes of the answer had come, {error}"
            self._answer.set_exception(Closed(what))

    def close(self) -> None:
        self.transport.close()


def parsed(buffer: bytearray) -> tuple[int, bytes, int] | None:
    """(status, body, size of both with the head) of a complete answer, None while something is missing."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(buffer[:end]).decode("latin-1")
    status = int(head.split(" ", 2)[1])
    fields = dict(
        (name.strip().lower(), value.strip())
        for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
    )
    start = end + 4
    if "content-length" in fields:
        size = start + int(fields["content-length"])
        return (status, bytes(buffer[start:size]), size) if len(buffer) >= size else None
    if fields.get("transfer-encoding") == "chunked":
        return _chunks(buffer, status, start)
    raise AssertionError(f"an answer without a length: {head!r}")


def _chunks(buffer: bytearray, status: int, start: int) -> tuple[int, bytes, int] | None:
    body = b""
    while (end := buffer.find(b"\r\n", start)) >= 0:
        size = int(bytes(buffer[start:end]), 16)
        start, after = end + 2, end + 2 + size + 2
        if len(buffer) < after:
            return None
        if not size:
            return status, body, after
        body += bytes(buffer[start : start + size])
        start = after
    return None


class Pool:
    """Connections that are kept open, as many as are needed at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[Connection] = []
        self.stray: list[bytes] = []

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """As Connection.ask. A connection that the server has closed while it was idle is not taken."""
        connection = await self._take()
        try:
            found = await connection.ask(method, path, body, headers)
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        return found

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            self._look(connection)
            if not connection.closed:
                return connection
        try:
            return await Connection.open(self._port)
        except OSError as error:
            raise Closed(f"closed: {error}") from error

    def _give_back(self, connection: Connection) -> None:
        self._look(connection)
        self._idle.append(connection)

    def _look(self, connection: Connection) -> None:
        if connection.stray:
            self.stray.append(connection.stray)
            connection.stray = b""

    def close(self) -> None:
        for connection in self._idle:
            self._look(connection)
            connection.close()
        self._idle.clear()
