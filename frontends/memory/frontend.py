"""MemoryFrontend: registers memory of local clients by descriptor, for the time of their connections.

    client ─► {"register": byte_size} and a descriptor ─► [frontend] ─► {"name": region}
    client ─► {"unregister": region}                   ─► [frontend] ─► {}

Each message of the SOCK_SEQPACKET socket gets its reply before the next is read; an invalid one gets
{"error": text}. One that is too long, or has too many descriptors, ends the connection. Inference requests
over HTTP or gRPC name the region like any other.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct

from core.control import called_by
from core.errors import CoreError
from core.server import InferenceServer
from frontends.memory.connection import MemoryConnection
from frontends.memory.options import MemoryOptions
from frontends.shared import unix_sockets
from frontends.shared.memory import MemoryControl
from frontends.shared.options import SharedOptions

logger = logging.getLogger("core")

MOST_CONNECTIONS = 1024
PAUSE_S = 1.0  # after a failure to accept a connection

_CREDENTIALS = struct.Struct("3i")  # struct ucred: process, user, group


class MemoryFrontend:
    """Serves the Unix domain socket --shared-memory-socket. Loop thread only."""

    name = "memory"

    def __init__(self, server: InferenceServer):
        options = MemoryOptions.of(server.options)
        self._memory = MemoryControl.of(server)
        self._keeps = server.options.workers > 1
        self._path = options.shared_memory_socket
        self._mode = SharedOptions.of(server.options).unix_socket_mode
        self._users = {os.geteuid(), 0, *options.shared_memory_socket_uid}
        self._listener: unix_sockets.UnixListener | None = None
        self._connections: dict[asyncio.Task[None], socket.socket] = {}

    @property
    def enabled(self) -> bool:
        return bool(self._path)

    async def start(self) -> None:
        """Listen. Raises CoreError if the socket cannot be opened."""
        self._listener = unix_sockets.listen(
            unix_sockets.with_prefix(self._path), self._mode, socket.SOCK_SEQPACKET
        )
        asyncio.get_running_loop().add_reader(self._listener.socket, self._accept)
        logger.info("Started SharedMemoryService at %s", self._path)

    async def stop(self, timeout_s: float) -> None:
        """Stop listening and close all connections, without regard to `timeout_s`.

        Running requests keep their views of the memory.
        """
        listener, self._listener = self._listener, None
        if listener is None:
            return
        asyncio.get_running_loop().remove_reader(listener.socket)
        listener.close()
        for each in self._connections:
            each.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    def _accept(self) -> None:
        """Accept all waiting connections; serve them, or close those with an `_objection`, without a reply.

        After an error, accept no connections for PAUSE_S seconds.
        """
        while self._listener is not None:
            try:
                client, _ = self._listener.socket.accept()
            except BlockingIOError:
                return
            # Too many open files, for example: accept the rest later.
            except OSError as error:
                logger.error("cannot take a connection for shared memory: %s", error)
                loop = asyncio.get_running_loop()
                loop.remove_reader(self._listener.socket)
                loop.call_later(PAUSE_S, self._accept_again)
                return
            if (reason := self._objection(client)) != "":
                logger.warning("a connection for shared memory is refused: %s", reason)
                client.close()
                continue
            client.setblocking(False)
            with called_by("a client of --shared-memory-socket"):
                task = asyncio.get_running_loop().create_task(self._serve(client))
            self._connections[task] = client
            task.add_done_callback(self._gone)

    def _accept_again(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().add_reader(self._listener.socket, self._accept)

    def _objection(self, client: socket.socket) -> str:
        """Return the reason why a client may not lend memory, "" if it may."""
        found = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        process, user, _ = _CREDENTIALS.unpack(found)
        if user not in self._users:
            return (
                f"process {process} is of user {user}, who is not the server's; --shared-memory-socket-uid "
                "allows others"
            )
        if len(self._connections) >= MOST_CONNECTIONS:
            return f"{MOST_CONNECTIONS} are the most"
        return ""

    async def _serve(self, client: socket.socket) -> None:
        connection = MemoryConnection(client, self._memory, self._keeps)
        try:
            await connection.run()
        except ConnectionError:
            pass
        finally:
            client.close()
            # Shielded from cancellation: the other workers must unregister the regions, too.
            await asyncio.shield(connection.end())

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task, None)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if not isinstance(error, CoreError):
            logger.error("a connection for shared memory is cut", exc_info=error)
