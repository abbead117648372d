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

_PORT, _GRPC_PORT = 8000, 8001


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

    def __init__(self, host: str, port: int, grpc_port: int = _GRPC_PORT):
        self._host, self._port, self._grpc_port = host, port, grpc_port

    async def addresses(self) -> list[Address]:
        found = await asyncio.get_running_loop().getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM
        )
        return sorted({Address(str(each[4][0]), self._port, self._grpc_port) for each in found})

    def __str__(self) -> str:
        return f"dns://{self._host}:{self._port}"


_SERVER = re.compile(
    r"(?:(?P<scheme>http|dns)://)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:/\s]+)(?::(?P<port>\d{1,5})(?::(?P<grpc>\d{1,5}))?)?/?"
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
        if match is None or not 0 < port < 65536 or not 0 < grpc_port < 65536:
            raise invalid(
                f"--servers: '{item}' is no server; write host:port, host:port:grpc_port, "
                "http://host:port or dns://name:port"
            )
        host = match["host"].strip("[]")
        found.append(
            DnsName(host, port, grpc_port)
            if match["scheme"] == "dns"
            else FixedAddress(Address(host, port, grpc_port))
        )
    if not found:
        raise invalid("--servers names no server; write --servers=host:port,host:port")
    return found
