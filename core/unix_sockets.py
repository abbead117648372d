"""Unix domain sockets that the server listens at: for clients on the same machine, without a port.

"unix:/path" ─► [listen] ─► a listening socket, whose file goes when it is closed
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

PREFIX = "unix:"
BACKLOG = 1024

# Address → descriptor of a socket that listens already: what a worker has from its supervisor, which keeps
# the file. Written once, before anything listens.
inherited: dict[str, int] = {}


def is_unix(address: str) -> bool:
    """Whether an address is the path of a Unix domain socket."""
    return address.startswith(PREFIX)


def with_prefix(path: str) -> str:
    """The address of a path, which may be an address already."""
    return path if is_unix(path) else f"{PREFIX}{path}"


class SocketFile:
    """The file of a socket that is bound. It removes that file only, never that of who took its place."""

    def __init__(self, path: str):
        found = os.stat(path)
        self._path = path
        self._file = (found.st_dev, found.st_ino)

    def remove(self) -> None:
        """The socket is closed, or will be."""
        try:
            found = os.stat(self._path)
            if (found.st_dev, found.st_ino) == self._file:
                os.unlink(self._path)
        except OSError:
            pass  # somebody has removed it


class UnixListener:
    """A listening socket.

    socket   not blocking
    file     None if another process made it, and others listen there too
    """

    def __init__(self, listening: socket.socket, file: SocketFile | None):
        self.socket = listening
        self._file = file

    def close(self) -> None:
        """Listen no more, and remove the file."""
        self.socket.close()
        self.remove()

    def remove(self) -> None:
        """Remove the file, for who has given the socket to somebody that closes it."""
        if self._file is not None:
            self._file.remove()


def listen(address: str, mode: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> UnixListener:
    """Listen at `address`, "unix:" and a path.

    mode   permissions of the file, in octal: who may connect
    A socket there that nobody listens at is replaced. Raises CoreError: UNAVAILABLE for one that somebody
    listens at, for another file and for what the system refuses, INVALID for an address without a path.
    """
    if address in inherited:
        listening = socket.socket(fileno=os.dup(inherited[address]))
        listening.setblocking(False)
        return UnixListener(listening, None)
    path = make_free(address, kind)
    listening = socket.socket(socket.AF_UNIX, kind)
    try:
        # The file is made with the permissions of the socket: it is never open to more than `mode` says.
        os.fchmod(listening.fileno(), int(mode, 8))
        listening.bind(path)
        os.chmod(path, int(mode, 8))  # what the umask has taken away
        listening.listen(BACKLOG)
        listening.setblocking(False)
        return UnixListener(listening, SocketFile(path))
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise _in_use(address) from None
        raise _refused(address, error) from None


def make_free(address: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> str:
    """The path of an address, where nothing is: a socket that nobody listens at is removed, its server has
    ended without a chance to do so. Raises as `listen`."""
    path = address.removeprefix(PREFIX)
    if path.startswith("///"):  # as gRPC writes it, unix:///run/core.sock
        path = path[2:]
    if not path:
        raise invalid(
            f"'{address}' names no socket; expected unix: and a path, unix:/run/core.sock"
        )
    _remove_stale(address, path, kind)
    return path


def _remove_stale(address: str, path: str, kind: socket.SocketKind) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _refused(address, error) from None
    if not stat.S_ISSOCK(found.st_mode):
        raise unavailable(f"cannot listen at '{address}': there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, kind) as asking:
        asking.setblocking(False)
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            pass
        except FileNotFoundError:  # removed just now
            return
        except OSError as error:
            # EAGAIN: more wait there than it takes at a time. EPROTOTYPE: a socket of another kind.
            if error.errno in (errno.EAGAIN, errno.EPROTOTYPE):
                raise _in_use(address) from None
            raise _refused(address, error) from None
        else:
            raise _in_use(address)
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _refused(address, error) from None


def _in_use(address: str) -> CoreError:
    return unavailable(f"Socket '{address}' already in use")


def _refused(address: str, error: OSError) -> CoreError:
    return unavailable(f"cannot listen at '{address}': {error.strerror or error}")


async def serve(
    protocol: Callable[[], asyncio.BaseProtocol], listener: UnixListener, **secure: Any
) -> asyncio.Server:
    """Serve who connects. Who closes the server calls `listener.remove`.

    secure   what asyncio takes for TLS
    """
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 13) and isinstance(loop, asyncio.SelectorEventLoop):
        secure["cleanup_socket"] = False  # the file is the listener's, and maybe another process's
    return await loop.create_unix_server(protocol, sock=listener.socket, backlog=BACKLOG, **secure)
