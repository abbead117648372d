"""Limits of connections: their number on one port, and the time in which a client must read."""

from __future__ import annotations

import asyncio
import socket
import sys

from core.system import platform

try:
    import resource
except ImportError:  # Windows has no limit of open files
    resource = None  # type: ignore[assignment]

BACKLOG = 1024  # connections of one port that wait to be accepted
_TCP_USER_TIMEOUT = None if platform.PORTABLE else socket.TCP_USER_TIMEOUT
_SPARE_FILES = 256  # open files that are reserved for models, logs and the other ports


def most_connections(wanted: int) -> int:
    """Return the largest number of connections of one port.

    It is `wanted`. If that is 0, it is the process's limit of open files less _SPARE_FILES, but at least half
    of it; sys.maxsize without such a limit.
    """
    if wanted:
        return wanted
    if resource is None:
        return sys.maxsize
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(files - _SPARE_FILES, files // 2)


def end_unread(listener: asyncio.AbstractServer, seconds: int) -> None:
    """Let the kernel close connections whose peer accepts no sent bytes for `seconds`; 0 sets no limit.

    Connections inherit TCP_USER_TIMEOUT from the listening sockets (RFC 5482, tcp(7)). This option limits how
    long bytes stay unacknowledged, or wait for an open window. A client that reads slowly stays connected.
    The function does nothing for Unix domain sockets, on systems other than Linux, and in the portable form.
    """
    if not seconds or _TCP_USER_TIMEOUT is None:
        return
    for each in getattr(listener, "sockets", ()):
        if each.family != socket.AF_UNIX:
            each.setsockopt(socket.IPPROTO_TCP, _TCP_USER_TIMEOUT, seconds * 1000)
