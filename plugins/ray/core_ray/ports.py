"""Ports of a replica's server: several replicas of a node share a range of ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.errors import CoreError, Kind, invalid, unsupported
from frontends.http.options import HttpOptions

if TYPE_CHECKING:
    import core

FRONTENDS = ("http", "grpc", "metrics")
MOST_REPLICAS = 64  # of a node; as many ports are tried
LOOPBACK = "127.0.0.1"
_EVERYWHERE = "0.0.0.0"
_REACHED = {_EVERYWHERE: LOOPBACK, "::": "::1"}  # address of all interfaces → one of this machine


def taken_from(options: dict[str, Any]) -> dict[str, tuple[int, str]]:
    """Remove the ports from the options of a server. Return frontend → (first port, address).

    Only frontends whose port is given are in it. Raises CoreError(INVALID) for a port that is none.
    """
    found = {}
    for name in FRONTENDS:
        given = options.pop(f"{name}_port", None)
        if given is not None:
            address = options.get(f"{name}_address", _EVERYWHERE)
            found[name] = (_port(name, given), str(address))
    return found


def _port(name: str, given: Any) -> int:
    try:
        port = int(str(given))
    except ValueError:
        port = -1
    if not 0 <= port <= 65535:
        raise invalid(
            f"{name}_port={given!r}: give the first port for the replicas of a node, or 0 for any free ones"
        )
    return port


def open_port(server: core.Server, name: str, first: int, address: str) -> int:
    """Open a frontend on the first free port of a range, and return the port.

    first   of the range; it has MOST_REPLICAS ports. 0 takes any free port
    The server's log and this error name the port. Raises CoreError(UNAVAILABLE) if none is free.
    """
    last = first if first == 0 else min(first + MOST_REPLICAS - 1, 65535)
    for port in range(first, last + 1):
        try:
            return server.serve(address=address, **{f"{name}_port": port})[name]
        except CoreError as error:
            if error.kind is not Kind.UNAVAILABLE or port == last:
                raise
    raise AssertionError("the last port returns or raises")


def reached_at(address: str, port: int) -> str:
    """Return host:port at which this machine reaches a frontend that listens at an address, as in a URL."""
    host = _REACHED.get(address, address)
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def check_http(server: core.Server) -> None:
    """Raise CoreError(UNSUPPORTED) if Serve's HTTP proxy cannot reach the HTTP port of a replica."""
    if HttpOptions.of(server.options).http_use_ssl_mutual:
        raise unsupported(
            "the HTTP ports of the replicas require a certificate of each client, and Serve's HTTP proxy "
            "reaches them without: call the ports of a CoreDeployment, or remove http_use_ssl_mutual"
        )
