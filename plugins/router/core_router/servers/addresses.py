"""Where the servers are: a list of addresses, and names of DNS that stand for several.

--servers ─► [read_servers] ─► AddressSource ─► addresses, again and again
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Sequence
from typing import Protocol

from core.errors import invalid
from core_router.servers.server import Address

_PORT, _GRPC_PORT, _METRICS_PORT = 8000, 8001, 8002


class AddressSource(Protocol):
    """Knows addresses of servers, which may change."""

    async def addresses(self) -> list[Address]:
        """Return the addresses now. Raises OSError if they cannot be found at the moment."""


class FixedAddress:
    """One server, at one address."""

    def __init__(self, address: Address):
        self._address = address

    async def addresses(self) -> list[Address]:
        return [self._address]

    def __str__(self) -> str:
        return str(self._address)


class DnsName:
    """The servers at all addresses of a name, such as a headless Service of Kubernetes."""

    def __init__(self, host: str, port: int, grpc_port: int = _GRPC_PORT, metrics_port: int = 0):
        self._host, self._port = host, port
        self._other_ports = grpc_port, metrics_port

    async def addresses(self) -> list[Address]:
        found = await asyncio.get_running_loop().getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM
        )
        return sorted({Address(str(each[4][0]), self._port, *self._other_ports) for each in found})

    def __str__(self) -> str:
        return f"dns://{self._host}:{self._port}"


_SERVER = re.compile(
    r"(?:(?P<scheme>http|dns)://)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:/\s]+)(?::(?P<port>\d{1,5})(?::(?P<grpc>\d{1,5})(?::(?P<metrics>\d{1,5}))?)?)?/?"
)


def read_servers(text: str) -> Sequence[AddressSource]:
    """Return the sources that the option --servers names, with commas between them.

    Raises CoreError(INVALID) for text that is no address.
    """
    found: list[AddressSource] = []
    for item in filter(None, (each.strip() for each in text.split(","))):
        match = _SERVER.fullmatch(item)
        port = int(match["port"] or _PORT) if match else 0
        grpc_port = int(match["grpc"] or _GRPC_PORT) if match else 0
        # Only beside the other ports of a server that has all of its own: 8002 may be another server's.
        standard = _METRICS_PORT if (port, grpc_port) == (_PORT, _GRPC_PORT) else 0
        metrics_port = int(match["metrics"] or standard) if match else 0
        if (
            match is None
            or not all(0 < each < 65536 for each in (port, grpc_port))
            or metrics_port > 65535
        ):
            raise invalid(
                f"--servers: '{item}' is no server; write host:port, host:port:grpc_port, "
                "host:port:grpc_port:metrics_port, http://host:port or dns://name:port"
            )
        host = match["host"].strip("[]")
        found.append(
            DnsName(host, port, grpc_port, metrics_port)
            if match["scheme"] == "dns"
            else FixedAddress(Address(host, port, grpc_port, metrics_port))
        )
    if not found:
        raise invalid("--servers names no server; write --servers=host:port,host:port")
    return found
