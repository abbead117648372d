"""Flags of TLS for `core replay`, by the names of perf_analyzer and `core bench`."""

from __future__ import annotations

import argparse

from core.errors import invalid
from core_capture.replay.tls import Tls


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the flags on a parser."""
    group = parser.add_argument_group(
        "TLS", "https:// in --url asks for TLS over HTTP; files are PEM"
    )
    add = group.add_argument
    add(
        "--ssl-https-ca-certificates-file",
        default="",
        metavar="FILE",
        help="who signs for the server",
    )
    add(
        "--ssl-https-client-certificate-file",
        default="",
        metavar="FILE",
        help="shown to the server",
    )
    add("--ssl-https-private-key-file", default="", metavar="FILE", help="key of that certificate")
    add("--ssl-https-verify-peer", type=int, default=1, choices=(0, 1), help="0: trust any server")
    add(
        "--ssl-https-verify-host",
        type=int,
        default=2,
        choices=(0, 1, 2),
        help="0: trust it for any host",
    )
    add(
        "--ssl-grpc-use-ssl",
        nargs="?",
        const="true",
        default="false",
        choices=("true", "false"),
        help="TLS over gRPC (%(default)s)",
    )
    add("--ssl-grpc-root-certifications-file", default="", metavar="FILE", help="as for HTTP")
    add("--ssl-grpc-certificate-chain-file", default="", metavar="FILE", help="as for HTTP")
    add("--ssl-grpc-private-key-file", default="", metavar="FILE", help="as for HTTP")


def https_of(given: argparse.Namespace) -> Tls:
    """Return the certificates for HTTPS. Raises CoreError(INVALID) if they contradict --url."""
    found = Tls(
        given.ssl_https_ca_certificates_file,
        given.ssl_https_client_certificate_file,
        given.ssl_https_private_key_file,
        bool(given.ssl_https_verify_peer),
        bool(given.ssl_https_verify_host),
    )
    _check(found, "https", given.url.startswith("https://"), "--url=https://HOST:PORT")
    return found


def grpc_of(given: argparse.Namespace) -> Tls | None:
    """Return the certificates for gRPC; None without TLS. Raises CoreError(INVALID) without its flag."""
    found = Tls(
        given.ssl_grpc_root_certifications_file,
        given.ssl_grpc_certificate_chain_file,
        given.ssl_grpc_private_key_file,
    )
    is_on = given.ssl_grpc_use_ssl == "true"
    _check(found, "grpc", is_on, "--ssl-grpc-use-ssl")
    return found if is_on else None


def _check(tls: Tls, protocol: str, is_on: bool, asking: str) -> None:
    if not is_on and (tls.root or tls.certificate or tls.key):
        raise invalid(f"the files of --ssl-{protocol}-… have a meaning with {asking} only")
    if tls.key and not tls.certificate:
        name = "client-certificate" if protocol == "https" else "certificate-chain"
        raise invalid(f"--ssl-{protocol}-private-key-file needs --ssl-{protocol}-{name}-file")
