"""The error for an address that another process has."""

from __future__ import annotations

from core.errors import CoreError, unavailable


def in_use(address: str, name: str) -> CoreError:
    """Return the error for an address on which another process listens.

    address   host:port
    name      prefix of the flags of the listener, such as "http"
    """
    port = address.rpartition(":")[2]
    flag = f"--{name.replace('_', '-')}-port"
    return unavailable(
        f"Socket '{address}' already in use; choose another port with {flag}, or end the process that "
        f"listens there: `ss -ltnp 'sport = :{port}'` shows it"
    )
