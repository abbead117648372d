"""Addresses of the own server for its load generators, and the credentials of who asks for the load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.errors import unavailable
from frontends.own_ports import authority, credentials

if TYPE_CHECKING:
    from core.server import InferenceServer


def server_flags(
    server: InferenceServer, model: str, protocol: str, headers: Mapping[str, str]
) -> list[str]:
    """Return the flags of core bench that name a model of this server.

    protocol  "http" or "grpc"
    headers   of the caller, whose credentials the requests get
    Raises CoreError(UNAVAILABLE) if the options of the server name no port of the protocol, if gRPC has TLS,
    or if HTTP demands certificates of clients.
    """
    return [
        f"--model-name={model}",
        f"--url={_url(server, protocol)}",
        f"--protocol={protocol}",
        # The certificate of this server is for its public name.
        *("--ssl-https-verify-peer=0", "--ssl-https-verify-host=0"),
        *(
            f"--header={each}:{found}"
            for each, found in credentials(server.options, headers).items()
        ),
    ]


def _url(server: InferenceServer, protocol: str) -> str:
    listener = next((each for each in server.options.listeners() if each.name == protocol), None)
    if listener is None or not (place := authority(listener)):
        raise unavailable(
            f"load over {protocol} needs a port of it that the options of the server name; run the command "
            "instead"
        )
    if protocol == "grpc" and listener.encrypted:
        raise unavailable("load over grpc with TLS: run the command instead")
    if listener.mutual:
        raise unavailable(
            "the HTTP port of this server demands a certificate of each client, and the server has none: run "
            "the command with --ssl-https-client-certificate-file instead"
        )
    return f"https://{place}" if listener.encrypted else place
