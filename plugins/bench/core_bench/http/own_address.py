"""Addresses of the own server for its load generators, and the credentials of who asks for the load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.errors import unavailable
from frontends.grpc.interceptors import PREFIX
from frontends.grpc.options import GrpcOptions
from frontends.http.options import HttpOptions

if TYPE_CHECKING:
    from core.server import InferenceServer

_CREDENTIALS = ("Authorization", "X-Api-Key")
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def server_flags(
    server: InferenceServer, model: str, protocol: str, headers: Mapping[str, str]
) -> list[str]:
    """Return the flags of core bench that name a model of this server.

    protocol  "http" or "grpc"
    headers   of the caller, whose credentials the requests get
    Raises CoreError(UNAVAILABLE) if the options of the server name no port of the protocol, or gRPC has TLS.
    """
    return [
        f"--model-name={model}",
        f"--url={_url(server, protocol)}",
        f"--protocol={protocol}",
        # The certificate of this server is for its public name.
        *("--ssl-https-verify-peer=0", "--ssl-https-verify-host=0"),
        *(f"--header={name}:{headers[name]}" for name in _credentials(server) if name in headers),
    ]


def _credentials(server: InferenceServer) -> tuple[str, ...]:
    """Return the names of the headers that identify a caller, or that restricted APIs demand."""
    http = HttpOptions.of(server.options).http_restricted_api.values()
    grpc = GrpcOptions.of(server.options).grpc_restricted_protocol.values()
    return (*_CREDENTIALS, *(name for name, _ in http), *(PREFIX + name for name, _ in grpc))


def _url(server: InferenceServer, protocol: str) -> str:
    listener = next((each for each in server.options.listeners() if each.name == protocol), None)
    if listener is None or not listener.port or listener.address.startswith("unix:"):
        raise unavailable(
            f"load over {protocol} needs a port of it that the options of the server name; run the command "
            "instead"
        )
    if protocol == "grpc" and listener.encrypted:
        raise unavailable("load over grpc with TLS: run the command instead")
    host = _ANY.get(listener.address, listener.address)
    authority = f"[{host}]:{listener.port}" if ":" in host else f"{host}:{listener.port}"
    if listener.encrypted:
        return f"https://{authority}"
    return authority
