"""A client of event streams that can leave, be killed, or read slowly."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
from collections.abc import AsyncIterator
from typing import Any

_RESET = struct.pack(
    "ii", 1, 0
)  # SO_LINGER: close() then resets the connection, as the end of a process does

# Begins streams, says so, and reads nothing further. Arguments: port, path, body, number of streams.
_PROGRAM = """
import http.client, sys, time
port, path, body, count = int(sys.argv[1]), sys.argv[2], sys.argv[3].encode(), int(sys.argv[4])
connections = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(count)]
for each in connections:
    each.request("POST", path, body, {"Content-Type": "application/json"})
answers = [each.getresponse() for each in connections]
found = {each.status for each in answers}
print("begun" if found == {200} else found, flush=True)
time.sleep(3600)
"""


async def started_process(
    port: int, path: str, document: dict[str, Any], count: int
) -> asyncio.subprocess.Process:
    """Start a process that begins some streams, and then prints the line `begun`."""
    arguments = str(port), path, json.dumps(document), str(count)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _PROGRAM, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )


class EventClient:
    """One connection with one request. Read `status`, then iterate over the events.

    limit   bytes that it reads ahead
    """

    def __init__(self, port: int, limit: int = 2**16):
        self.port = port
        self.status = 0
        self._limit = limit

    async def open(self, path: str, document: dict[str, Any]) -> int:
        """Send a request; return the status of its response."""
        body = json.dumps(document).encode()
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self.port, limit=self._limit
        )
        self._writer.write(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        self.status = int(head[9:12])
        self._chunked = b"chunked" in head.lower()
        return self.status

    async def body(self) -> bytes:
        """Return a body that is no stream of events."""
        return await self._reader.read()

    async def events(self) -> AsyncIterator[str]:
        """Yield the data of each event. Raises ValueError if the body ends without its last chunk."""
        rest = b""
        while part := await self._chunk():
            *whole, rest = (rest + part).split(b"\n\n")
            for each in whole:
                yield each.decode().removeprefix("data: ")
        if rest:
            raise ValueError(f"half an event at the end: {rest[:100]!r}")

    async def _chunk(self) -> bytes:
        try:
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            data = await self._reader.readexactly(size + 2)
        except asyncio.IncompleteReadError as error:
            raise ValueError("the body ends without its last chunk") from error
        return data[:-2]

    def close(self) -> None:
        """Leave: close the connection."""
        self._writer.close()

    def kill(self) -> None:
        """Vanish as the process of a client does: reset the connection."""
        self._writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, _RESET
        )
        self._writer.transport.abort()
