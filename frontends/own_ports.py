"""How a plugin calls the ports of its own server, with the credentials of the caller for whom it does."""

from __future__ import annotations

from collections.abc import Mapping

from core.options import Listener, Options
from frontends.grpc.interceptors import PREFIX
from frontends.grpc.options import GrpcOptions
from frontends.http.options import HttpOptions

_CALLER = ("Authorization", "X-Api-Key")
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def authority(listener: Listener) -> str:
    """Return host:port at which this process reaches a listener.

    "" for a Unix domain socket, and if the options leave the port to the system.
    """
    if not listener.port or listener.address.startswith("unix:"):
        return ""
    host = _ANY.get(listener.address, listener.address)
    return f"[{host}]:{listener.port}" if ":" in host else f"{host}:{listener.port}"


def restricted_headers(options: Options) -> tuple[str, ...]:
    """Return the names of the headers of --http-restricted-api and --grpc-restricted-protocol."""
    http = HttpOptions.of(options).http_restricted_api.values()
    grpc = GrpcOptions.of(options).grpc_restricted_protocol.values()
    return (*(name for name, _ in http), *(PREFIX + name for name, _ in grpc))


def credentials(options: Options, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that say who its caller is, or that restricted APIs demand."""
    names = (*_CALLER, *restricted_headers(options))
    return {name: headers[name] for name in names if name in headers}
