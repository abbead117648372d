"""Paths of the protocol's extensions that this server does not serve: 501, with a text that says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from core.errors import unsupported
from core.server import Server
from frontends.http.message import Answer, Call


def absent(what: str) -> Callable[[Server, Call], Awaitable[Answer]]:
    """A service that refuses."""

    async def refuse(server: Server, call: Call) -> Answer:
        raise unsupported(f"{what} is not supported by this server")

    return refuse
