"""How many clients a port has at a time, and how long one may not read what it asked for."""

from __future__ import annotations

import asyncio
import socket
import sys

try:
    import resource
except ImportError:  # Windows: nothing says how many files may be open
    resource = None  # type: ignore[assignment]

BACKLOG = 1024  # connections of one port that the system keeps until they are accepted
_TCP_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)  # of Linux
_SPARE_FILES = 256  # of those that the process may open: for models, logs and the other ports


def most_connections(wanted: int) -> int:
    """Connections of one port; `wanted` is the option's number, 0 for what open files allow."""
    if wanted:
        return wanted
    if resource is None:
        return sys.maxsize
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(files - _SPARE_FILES, files // 2)


def end_unread(listener: asyncio.AbstractServer, seconds: int) -> None:
    """Let connections end whose peer takes nothing for so long of what waits for it; 0 for never.

    Connections inherit it from the sockets that listen (RFC 5482; tcp(7): bytes that are sent and not
    acknowledged, or that a closed window holds back). Who reads a little now and then goes on. Elsewhere
    than on Linux nothing happens.
    """
    if not seconds or _TCP_USER_TIMEOUT is None:
        return
    for each in getattr(listener, "sockets", ()):
        if each.family != socket.AF_UNIX:
            each.setsockopt(socket.IPPROTO_TCP, _TCP_USER_TIMEOUT, seconds * 1000)
