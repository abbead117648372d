"""Addresses of the own server for its load generators, and the credentials of who asks for the load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.errors import unavailable
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
    Raises CoreError(UNAVAILABLE) if the options of the server name no port of the protocol.
    """
    return [
        f"--model-name={model}",
        f"--url={_url(server, protocol)}",
        f"--protocol={protocol}",
        # The certificate of this server is for its public name.
        *("--ssl-https-verify-peer=0", "--ssl-https-verify-host=0"),
        *(f"--header={name}:{headers[name]}" for name in _CREDENTIALS if name in headers),
    ]


def _url(server: InferenceServer, protocol: str) -> str:
    listener = next((each for each in server.options.listeners() if each.name == protocol), None)
    if listener is None or not listener.port or listener.address.startswith("unix:"):
        raise unavailable(
            f"load over {protocol} needs a port of it that the options of the server name; run the command "
            "instead"
        )
    host = _ANY.get(listener.address, listener.address)
    authority = f"[{host}]:{listener.port}" if ":" in host else f"{host}:{listener.port}"
    if protocol == "http" and HttpOptions.of(server.options).has_tls:
        return f"https://{authority}"
    return authority
