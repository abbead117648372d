"""The options about TLS, of the router's ports and to its servers, and about where these are.

command line ─► [sources_of, certificates_of] ─► RouterOptions
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.errors import invalid
from core_router.servers.addresses import read_servers
from core_router.servers.kubernetes_api import ACCOUNT, KubernetesApi
from core_router.servers.source import AddressSource
from core_router.servers.tls import ServerCertificates
from frontends.shared.tls import Certificates

_RELOAD_S = 10.0


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options on a parser."""
    own = parser.add_argument_group("TLS of the router's ports")
    for name in ("http", "grpc"):
        own.add_argument(f"--{name}-use-ssl", **_SWITCH, help="use TLS, 1.2 or newer")
        own.add_argument(
            f"--{name}-use-ssl-mutual", **_SWITCH, help="also require certificates of clients"
        )
        for option, text in (
            ("server-cert", "the router's certificate, then intermediate ones"),
            ("server-key", "its private key, without a password"),
            ("root-cert", "root certificates for those of clients"),
        ):
            own.add_argument(f"--{name}-{option}", default="", metavar="FILE", help=f"PEM: {text}")
    own.add_argument(
        "--admin-use-ssl", **_SWITCH, help="TLS for --admin-port, by the files of --http-…"
    )
    own.add_argument(
        "--reload-secs",
        type=float,
        default=_RELOAD_S,
        metavar="S",
        help="seconds between two looks at the files of certificates; 0 for SIGHUP only (%(default)g)",
    )
    to = parser.add_argument_group("TLS to the servers with https:// or grpcs://")
    for option, text in (
        ("root-cert", "issuers of their certificates, in place of those of the system"),
        ("client-cert", "the router's certificate for servers that ask for one"),
        ("client-key", "its private key, without a password"),
    ):
        to.add_argument(f"--server-{option}", default="", metavar="FILE", help=f"PEM: {text}")
    to.add_argument(
        "--server-name", default="", metavar="NAME", help="of all their certificates, not the host"
    )
    to.add_argument(
        "--server-insecure", **_SWITCH, help="accept any certificate: for trials, not for networks"
    )
    to.add_argument(
        "--server-metrics-plain", **_SWITCH, help="the port of metrics of https:// has no TLS"
    )
    of = parser.add_argument_group("servers with kubernetes://")
    of.add_argument(
        "--kubernetes-api",
        default="",
        metavar="URL",
        help="of the API, such as https://10.0.0.1:443; by default that of the router's own cluster",
    )
    of.add_argument(
        "--kubernetes-account",
        type=Path,
        default=ACCOUNT,
        metavar="FOLDER",
        help="with token and ca.crt of the service account (%(default)s)",
    )


def sources_of(given: argparse.Namespace) -> Sequence[AddressSource]:
    """Return where the servers are. Raises CoreError(INVALID)."""
    api = KubernetesApi(given.kubernetes_api, given.kubernetes_account)
    return read_servers(given.servers, not given.server_metrics_plain, api)


def certificates_of(given: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of RouterOptions about TLS. Raises CoreError(INVALID) for options that contradict."""
    certificates = {name: _own(given, name) for name in ("http", "grpc")}
    if given.admin_use_ssl:
        certificates["admin"] = Certificates.of("http", given)
    servers = ServerCertificates(
        root=given.server_root_cert,
        certificate=given.server_client_cert,
        key=given.server_client_key,
        name=given.server_name,
        is_insecure=given.server_insecure,
    )
    has_tls = "https://" in given.servers or "grpcs://" in given.servers
    if servers != ServerCertificates() and not has_tls:
        raise invalid(
            "--server-… are about TLS, which no server of --servers has; write https://host:port, or "
            "grpcs://host:port for TLS with gRPC only"
        )
    return {
        **{f"{name}_certificates": found for name, found in certificates.items()},
        "server_certificates": servers if has_tls else None,
        "reload_s": given.reload_secs,
    }


def _own(given: argparse.Namespace, port: str) -> Certificates | None:
    """Return the certificates of a port; None without TLS."""
    certificates = Certificates.of(port, given)
    if getattr(given, f"{port}_use_ssl") or certificates.mutual:
        return certificates
    if certificates.paths and not (port == "http" and given.admin_use_ssl):
        raise invalid(
            f"--{port}-server-cert, --{port}-server-key and --{port}-root-cert have a meaning with "
            f"--{port}-use-ssl only"
        )
    return None


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError
    return text.lower() in ("true", "1")


# argparse shows the name in its errors: "invalid true or false value: 'x'".
_switch.__name__ = "true or false"
# Alone, or with a value as for `core serve`.
_SWITCH: dict[str, Any] = {
    "type": _switch,
    "nargs": "?",
    "const": True,
    "default": False,
    "metavar": "BOOL",
}
