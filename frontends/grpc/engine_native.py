"""The methods over nghttp2, on the event loop of the server.

connection ─► [engine] ─► method.  The compiled part is native/connection.pyx, which is there if
libnghttp2 was when this package was built; engine_grpcio.py is the engine that always is.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from frontends.grpc import transport
from frontends.grpc.engine import Engine
from frontends.grpc.native.connection import Connection
from frontends.grpc.native.engine_context import EngineContext
from frontends.grpc.options import GrpcOptions
from frontends.shared import unix_sockets
from frontends.shared.connection_limit import BACKLOG, most_connections
from frontends.shared.inherited_sockets import listeners_at
from frontends.shared.ports import in_use
from frontends.shared.tls import Certificates, listening

_GOODBYE_S = 1.0  # for the last bytes of connections that are cut off


class _Protocol(Connection, asyncio.BufferedProtocol):
    """A Connection with the base class by which asyncio knows a protocol that reads into a buffer."""


class _Refused(asyncio.Protocol):
    """A connection beyond the largest number: it is closed at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


class NativeEngine(Engine):
    """Serves methods over HTTP/2 by libnghttp2, with asyncio's servers and transports."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._port: EngineContext | None = None
        self._listeners: list[asyncio.Server] = []
        self._unix: unix_sockets.UnixListener | None = None

    async def start(self) -> int:
        options = self._options
        certificates = Certificates.of("grpc", options) if options.has_tls else None
        secure = listening(certificates, "h2", self._files)
        loop = asyncio.get_running_loop()
        port = EngineContext(
            self._methods,
            options,
            loop,
            transport.compression_level(options),
            transport.MOST_MESSAGE_BYTES,
            self._account,
            self._observers,
        )
        address = transport.address(options)

        most = most_connections(options.grpc_max_connections)

        def protocol() -> asyncio.BaseProtocol:
            return _Protocol(port) if len(port.connections) < most else _Refused()

        if unix_sockets.is_unix(address):
            self._unix = unix_sockets.listen(address, self._socket_mode)
            self._listeners = [await unix_sockets.serve(protocol, self._unix, **secure)]
            self._port = port
            return options.grpc_port
        try:
            sockets = _sockets(options)
        except OSError:
            raise in_use(address, "grpc") from None
        for each in sockets:
            self._listeners.append(
                await loop.create_server(protocol, sock=each, backlog=BACKLOG, **secure)
            )
        self._port = port
        return int(sockets[0].getsockname()[1])

    async def stop(self, grace_s: float) -> None:
        port, self._port = self._port, None
        if port is None:
            return
        for listener in self._listeners:
            listener.close()
        if self._unix is not None:
            self._unix.remove()
        empty = asyncio.Event()
        port.close(empty.set)
        if await _within(grace_s, empty):
            return
        port.cut_off()
        if not await _within(_GOODBYE_S, empty):
            port.abort()


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Wait until `event` is set, at most some seconds. Return whether it is set."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except asyncio.TimeoutError:
        return False
    return True


def _sockets(options: GrpcOptions) -> list[socket.socket]:
    """Return the sockets that this worker inherits for the address, if there are any.

    Else return a new listening socket for each address of the host, all with one port. Raises OSError.
    """
    if found := listeners_at(transport.address(options)):
        return found
    host, port = options.grpc_address.strip("[]"), options.grpc_port
    try:
        for family, kind, protocol, _, address in dict.fromkeys(
            socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        ):
            each = socket.socket(family, kind, protocol)
            found.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if options.reuse_grpc_port:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                # :: alone stands for the addresses of both families.
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
            # The first one chooses when the system may choose.
            each.bind((address[0], found[0].getsockname()[1] if found[1:] else port, *address[2:]))
            each.listen(BACKLOG)
            each.setblocking(False)
    except OSError:
        for each in found:
            each.close()
        raise
    return found
