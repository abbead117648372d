"""Unix domain sockets of the server: for clients on the same machine, without a port.

"unix:/path" ─► [listen] ─► a listening socket, whose file is removed when it is closed
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
import sys
from collections.abc import Callable
from typing import Any

from core.errors import CoreError, invalid, unavailable
from frontends.shared.inherited_sockets import listeners_at

PREFIX = "unix:"
BACKLOG = 1024
# EAGAIN: its backlog is full. EPROTOTYPE: a socket of another type.
_IN_USE = (errno.EADDRINUSE, errno.EAGAIN, errno.EPROTOTYPE)


def is_unix(address: str) -> bool:
    """Return whether an address is the path of a Unix domain socket."""
    return address.startswith(PREFIX)


def with_prefix(path: str) -> str:
    """Return the address of a path: the path with "unix:" in front. An address is returned unchanged."""
    return path if is_unix(path) else f"{PREFIX}{path}"


class SocketFile:
    """The file of a bound socket. `remove` removes only this file, never a later one at the same path."""

    def __init__(self, path: str):
        found = os.stat(path)
        self._path = path
        self._file = (found.st_dev, found.st_ino)

    def remove(self) -> None:
        """Remove the file, unless it is removed already or another file is at its path."""
        try:
            found = os.stat(self._path)
            if (found.st_dev, found.st_ino) == self._file:
                os.unlink(self._path)
        except OSError:
            pass  # it is removed already, or no longer ours to remove


class UnixListener:
    """A listening socket.

    socket   listening socket in non-blocking mode
    file     file of the socket; None if another process owns the file, because several processes listen
    """

    def __init__(self, listening: socket.socket, file: SocketFile | None):
        self.socket = listening
        self._file = file

    def close(self) -> None:
        """Close the socket and remove the file."""
        self.socket.close()
        self.remove()

    def remove(self) -> None:
        """Remove the file, if this process owns it. Called instead of `close` if others close the socket."""
        if self._file is not None:
            self._file.remove()


def listen(address: str, mode: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> UnixListener:
    """Return a listener at `address`: with a new socket, or with the inherited one that listens there.

    address   "unix:" and a path
    mode      permissions of the file as octal digits; write permission allows to connect
    A stale socket at the path is replaced. Raises CoreError(UNAVAILABLE) if a process listens there, if the
    path is another kind of file and if the system refuses; CoreError(INVALID) for an address without a path.
    """
    for inherited in listeners_at(address):  # the supervisor owns the file
        return UnixListener(inherited, None)
    path = make_free(address, kind)
    listening = socket.socket(socket.AF_UNIX, kind)
    try:
        # The file gets the permissions of the socket: it never has more than `mode`.
        os.fchmod(listening.fileno(), int(mode, 8))
        listening.bind(path)
        os.chmod(path, int(mode, 8))  # restore the bits that the umask has cleared
        listening.listen(BACKLOG)
        listening.setblocking(False)
        return UnixListener(listening, SocketFile(path))
    except OSError as error:
        listening.close()
        raise _refused(address, error) from None


def make_free(address: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> str:
    """Remove a stale socket at an address, if there is one, and return the path of the address.

    A killed server leaves its socket behind. Raises what `listen` raises.
    """
    path = address.removeprefix(PREFIX)
    if path.startswith("///"):  # gRPC's form: unix:///run/core.sock
        path = path[2:]
    if not path:
        raise invalid(
            f"'{address}' names no socket; expected unix: and a path, unix:/run/core.sock"
        )
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise unavailable(f"cannot listen at '{address}': there is a file that is no socket")
        try:
            with socket.socket(socket.AF_UNIX, kind) as client:
                client.setblocking(False)
                client.connect(path)
            raise unavailable(f"Socket '{address}' already in use")
        except ConnectionRefusedError:
            os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _refused(address, error) from None
    return path


def _refused(address: str, error: OSError) -> CoreError:
    if error.errno in _IN_USE:
        return unavailable(f"Socket '{address}' already in use")
    return unavailable(f"cannot listen at '{address}': {error.strerror or error}")


async def serve(
    protocol: Callable[[], asyncio.BaseProtocol], listener: UnixListener, **secure: Any
) -> asyncio.Server:
    """Start and return an asyncio server for the connections of a listener.

    protocol   makes the protocol of each connection
    secure     asyncio's arguments for TLS
    The caller closes the server, then calls `listener.remove`.
    """
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 13) and isinstance(loop, asyncio.SelectorEventLoop):
        secure["cleanup_socket"] = False  # the listener or another process owns the file
    return await loop.create_unix_server(protocol, sock=listener.socket, backlog=BACKLOG, **secure)
