"""How a caller shows who it is over HTTP, and how it is told that this is not enough."""

from __future__ import annotations

import math
from asyncio import BaseTransport
from collections.abc import Mapping
from typing import Protocol

from core.errors import CoreError, Exhausted, Unauthenticated
from frontends.shared.access import Credentials


class Headers(Protocol):
    """Headers whose names have no case; each may have come several times."""

    def getall(self, key: str, default: tuple[str, ...]) -> list[str] | tuple[str, ...]: ...


def shown(headers: Headers, address: str) -> Credentials:
    """What headers show. Raises Unauthenticated for what is shown in another form."""
    return Credentials.of(
        headers.getall("Authorization", ()), headers.getall("X-Api-Key", ()), address
    )


def address_of(transport: BaseTransport | None) -> str:
    """Where a connection comes from, without its port; "unix" for a Unix domain socket."""
    name = None if transport is None else transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) else "unix"


def answer_headers(error: CoreError) -> Mapping[str, str]:
    """What the answer to a refused request says beside its text (RFC 6750, 3; RFC 9110, 10.2.3)."""
    if isinstance(error, Unauthenticated):
        reason = ', error="invalid_token"' if error.shown else ""
        return {"WWW-Authenticate": f'Bearer realm="core"{reason}'}
    if isinstance(error, Exhausted):
        return {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))}
    return {}
