"""The error for an address on which another process listens."""

from __future__ import annotations

from core.errors import CoreError, unavailable


def in_use(address: str, name: str) -> CoreError:
    """Return CoreError(UNAVAILABLE) for an address on which another process listens.

    address   host:port
    name      of the listener that wants it, such as "http": the text advises --<name>-port
    """
    port = address.rpartition(":")[2]
    flag = f"--{name.replace('_', '-')}-port"
    return unavailable(
        f"Socket '{address}' already in use; choose another port with {flag}, or end the process that "
        f"listens there: `ss -ltnp 'sport = :{port}'` shows it"
    )
