"""MemoryConnection: the regions that one client lends, from its first message until it disconnects."""

from __future__ import annotations

import array
import asyncio
import json
import os
import secrets
import socket
from typing import Any

from core.errors import CoreError, invalid
from frontends.shared.memory import MemoryControl

_LONGEST = 4096  # bytes of a message
_DESCRIPTOR_BYTES = array.array("i").itemsize


class MemoryConnection:
    """The connection of one client that lends shared memory. Loop thread only.

    client   a non-blocking socket, which the caller closes
    keeps    whether each descriptor stays open while its region exists. Then other workers, also those that
             start later, can open the memory by the descriptor's number
    """

    def __init__(self, client: socket.socket, memory: MemoryControl, keeps: bool):
        self._client = client
        self._memory = memory
        self._keeps = keeps
        self._lent: dict[str, int] = {}  # region → descriptor, -1 for one that is closed

    async def run(self) -> None:
        """Answer messages until the client disconnects or does not read replies. Raises ConnectionError."""
        while True:
            data, files = await self._receive()
            if not data:
                _close(files)
                return
            try:
                answer = await self._answer(data, files)
            except CoreError as error:
                answer = {"error": error.message}
            finally:
                _close(files)
            # End the connection of a client that does not read its replies.
            try:
                self._client.send(json.dumps(answer).encode())
            except BlockingIOError:
                return
            # Let other tasks run: a fast client could block the loop.
            await asyncio.sleep(0)

    async def end(self) -> None:
        """Unregister all regions of the client, after its disconnect. A CoreError is ignored."""
        for name in list(self._lent):
            try:
                await self._unregister(name)
            except CoreError:
                pass  # the server ends

    async def _answer(self, data: bytes, files: list[int]) -> dict[str, Any]:
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            message = None
        if type(message) is dict and type(size := message.get("register")) is int:
            if len(files) != 1:
                raise invalid(f"register comes with one descriptor, here are {len(files)}")
            return {"name": await self._register(files, size)}
        name = message.get("unregister") if type(message) is dict else None
        if type(name) is str and name in self._lent:
            await self._unregister(name)
            return {}
        raise invalid(
            'expected {"register": byte_size} with a descriptor, or {"unregister": name} of a region of this '
            "connection"
        )

    async def _register(self, files: list[int], byte_size: int) -> str:
        # A client that knows the name may use the memory.
        name = f"lent-{secrets.token_hex(16)}"
        await self._memory.lend_from(name, os.getpid(), files[0], byte_size)
        self._lent[name] = files.pop() if self._keeps else -1
        return name

    async def _unregister(self, name: str) -> None:
        file = self._lent.pop(name)
        try:
            await self._memory.give_back(name)
        finally:
            if file != -1:
                os.close(file)

    async def _receive(self) -> tuple[bytes, list[int]]:
        """Wait for the next message; return it and its descriptors. After the client's disconnect it is b"".

        Raises ConnectionError, also for a message that is too long or has too many descriptors.
        """
        while True:
            try:
                data, about, flags, _ = self._client.recvmsg(
                    _LONGEST, socket.CMSG_SPACE(_DESCRIPTOR_BYTES), socket.MSG_CMSG_CLOEXEC
                )
                break
            except BlockingIOError:
                await _readable(self._client)
        files = array.array("i")
        for level, kind, content in about:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                files.frombytes(content[: len(content) - len(content) % files.itemsize])
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            _close(list(files))
            raise ConnectionAbortedError("a message is longer than messages are")
        return data, list(files)


async def _readable(client: socket.socket) -> None:
    """Wait until the socket has bytes to read, or its peer has disconnected."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(client, tell)
    try:
        await ready
    finally:
        loop.remove_reader(client)


def _close(files: list[int]) -> None:
    for each in files:
        os.close(each)
    files.clear()
