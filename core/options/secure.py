"""--secure: other defaults for a server that strangers can reach, and what it will not start without.

    flags that were given ─► [harden] ─► their values and the others' ─► Options ─► [check_secure]

A flag that was given stays as it was given, but where nobody could have meant it: without a way to know
who calls, and without TLS towards other machines, there is no secure server.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.errors import invalid

if TYPE_CHECKING:
    from core.options.table import Options

LOOPBACK = "127.0.0.1"

# flag → what it is with --secure if nobody has given it, and what that means
PROFILE: dict[str, tuple[Any, str]] = {
    "http_address": (LOOPBACK, "HTTP is for this machine only"),
    "grpc_address": (LOOPBACK, "gRPC is for this machine only"),
    "metrics_address": (LOOPBACK, "metrics are for this machine only"),
    "model_control_mode": ("none", "clients load and unload no models"),
    "allow_client_shm": (False, "clients register no shared memory"),
    "allow_remote_settings": (False, "clients change no settings of log and traces"),
    "auth_open": (("health",), "only health needs no token"),
}


def harden(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a command line with those of the profile, if it asks for that.

    given   flag with underscores → value, of flags that somebody has given
    """
    if not given.get("secure"):
        return dict(given)
    said = []
    values = dict(given)
    for name, (value, meaning) in PROFILE.items():
        flag = f"--{name.replace('_', '-')}"
        if name not in given:
            values[name] = value
            said.append(f"{meaning}; {flag} says otherwise")
        elif given[name] != value:
            said.append(f"{flag} was given and stays {_shown(given[name])}")
    return {**values, "hardened": tuple(said)}


def check_secure(options: Options) -> None:
    """Raise CoreError(INVALID) where --secure cannot be kept."""
    if options.secure_without_tls and not options.secure:
        raise invalid("--secure-without-tls has a meaning with --secure only")
    if not options.secure:
        return
    if not (options.auth_tokens or options.auth_jwks or _mutual(options)):
        raise invalid(
            "--secure needs to know who calls. Make a token and name its file:\n"
            "  python -m core token NAME --role infer --file tokens.txt\n"
            "  core-serve --secure --auth-tokens=tokens.txt ...\n"
            "or name the keys of who issues JWT with --auth-jwks, or ask every client for a certificate "
            "with --http-use-ssl-mutual=true and --grpc-use-ssl-mutual=true (docs/security.md)"
        )
    for name, address, encrypted in _listeners(options):
        if not (encrypted or options.secure_without_tls or is_local(address)):
            raise invalid(
                f"--secure: --{name}-address={address} can be reached from other machines; turn TLS on "
                f"with --{name}-use-ssl=true, or say --secure-without-tls if a proxy has it"
            )
    if (options.allow_sagemaker or options.allow_vertex_ai) and not options.secure_without_tls:
        raise invalid(
            "--secure: --allow-sagemaker and --allow-vertex-ai listen for other machines without TLS, as "
            "their platforms want it; say --secure-without-tls if the platform has it"
        )


def _listeners(options: Options) -> list[tuple[str, str, bool]]:
    """(name, address, whether it is over TLS) of what listens."""
    http = options.http_use_ssl or options.http_use_ssl_mutual
    grpc = options.grpc_use_ssl or options.grpc_use_ssl_mutual
    found = (
        (options.allow_http, "http", options.http_address, http),
        (options.allow_grpc, "grpc", options.grpc_address, grpc),
        (options.allow_metrics, "metrics", options.metrics_address, options.metrics_use_ssl),
    )
    return [(name, address, encrypted) for allowed, name, address, encrypted in found if allowed]


def _mutual(options: Options) -> bool:
    """Whether every client of inference shows a certificate."""
    if options.allow_sagemaker or options.allow_vertex_ai:
        return False
    http = options.http_use_ssl_mutual or not options.allow_http
    grpc = options.grpc_use_ssl_mutual or not options.allow_grpc
    return http and grpc and (options.allow_http or options.allow_grpc)


def is_local(address: str) -> bool:
    """Whether only this machine can reach an address to listen on."""
    if address.startswith("unix:") or address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
