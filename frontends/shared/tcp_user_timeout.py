"""Clients that do not read what they asked for: the kernel closes their connections."""

from __future__ import annotations

import asyncio
import socket

_OPTION = getattr(socket, "TCP_USER_TIMEOUT", None)  # of Linux


def end_unread(listener: asyncio.AbstractServer, seconds: int) -> None:
    """Let connections end whose peer takes nothing for so long of what waits for it; 0 for never.

    Connections inherit it from the sockets that listen (RFC 5482; tcp(7): bytes that are sent and not
    acknowledged, or that a closed window holds back). Who reads a little now and then goes on. Elsewhere
    than on Linux nothing happens.
    """
    if not seconds or _OPTION is None:
        return
    for each in getattr(listener, "sockets", ()):
        if each.family != socket.AF_UNIX:
            each.setsockopt(socket.IPPROTO_TCP, _OPTION, seconds * 1000)
