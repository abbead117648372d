"""Ports: the ports and Unix domain sockets of all workers' frontends, which the supervisor holds."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

from core.errors import CoreError, unavailable
from core.options import Listener, Options
from core.system import platform
from frontends.shared import unix_sockets
from frontends.shared.inherited_sockets import address_of
from frontends.shared.ports import in_use


class Ports:
    """The ports of the server, which the supervisor binds until `close`.

    The supervisor does not listen on ports: the kernel passes connections to the workers. It holds them so
    that no other program takes a port while a worker restarts, and finds a port in use before workers start.

    It listens on Unix domain sockets, which the workers inherit: connections wait until a worker accepts. In
    the portable form it also listens on ports: only Linux divides connections between sockets of one port.

    chosen   name of an option, such as http_port → the port that is bound for it
    """

    def __init__(self, options: Options):
        """Bind all ports. Raises CoreError(UNAVAILABLE) for a port in use or an address it cannot bind."""
        self.chosen: dict[str, int] = {}
        self._sockets: list[socket.socket] = []
        self._listeners: dict[str, unix_sockets.UnixListener] = {}
        self._shared: dict[str, list[int]] = {}
        try:
            for each in options.listeners():
                self._keep(each)
        except CoreError:
            self.close()
            raise

    def _keep(self, listener: Listener) -> None:
        host, port = listener.address, listener.port
        if listener.is_unix:
            self._listeners[host] = unix_sockets.listen(host, listener.mode, listener.kind)
            return
        try:
            found = _bind(host.strip("[]"), port, listener.shared)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise in_use(f"{host}:{port}", listener.name) from None
            reason = error.strerror or error
            raise unavailable(f"cannot listen at '{host}:{port}': {reason}") from None
        self._sockets += found
        chosen = self.chosen[f"{listener.name}_port"] = found[0].getsockname()[1]
        if platform.PORTABLE:
            for each in found:
                each.listen(unix_sockets.BACKLOG)
            self._shared[address_of(host, chosen)] = [each.fileno() for each in found]

    @property
    def listening(self) -> dict[str, list[int]]:
        """Address where the supervisor listens → descriptors of its sockets there, for the workers."""
        unix = {address: [each.socket.fileno()] for address, each in self._listeners.items()}
        return unix | self._shared

    def close(self) -> None:
        """Close all sockets, which releases the ports. A second call does nothing."""
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()
        for each in self._sockets:
            each.close()
        self._sockets.clear()


def _bind(host: str, port: int, shared: bool) -> Sequence[socket.socket]:
    """Bind a socket at each address of the host, all at the same port; return them. Raises OSError.

    Workers can bind the port, too, except in the portable form, where they inherit these sockets.
    host     name or address; "" for all addresses
    port     0: the system chooses one
    shared   True if another server may already have bound the port
    """
    found: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(
            socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        ):
            each = socket.socket(family, kind, protocol)
            found.append(each)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            chosen = found[0].getsockname()[1] if found[1:] else port
            each.bind((address[0], chosen, *address[2:]))
            if not platform.PORTABLE:
                # After the bind, which fails if another server has the port: from now on only sockets with
                # SO_REUSEPORT, as the workers have, can bind it, also while no worker listens.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except OSError:
        for each in found:
            each.close()
        raise
    return found
