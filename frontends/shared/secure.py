"""--secure: safe defaults for a server in an untrusted network, and checks before its start.

    flags that the user sets ─► [harden] ─► Options ─► [check]

A flag that the user sets keeps its value. With --secure, the server does not start unless it can authenticate
callers, and uses TLS on every listener that other machines can reach or has --secure-without-tls.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from core.errors import invalid
from core.options import Listener

if TYPE_CHECKING:
    from frontends.shared.options import SharedOptions

LOOPBACK = "127.0.0.1"

# Flag → default with --secure, and its meaning for the log.
PROFILE: dict[str, tuple[Any, str]] = {
    "http_address": (LOOPBACK, "HTTP is for this machine only"),
    "grpc_address": (LOOPBACK, "gRPC is for this machine only"),
    "metrics_address": (LOOPBACK, "metrics are for this machine only"),
    "model_control_mode": ("none", "clients load and unload no models"),
    "allow_client_shm": (False, "clients register no shared memory"),
    "allow_remote_settings": (False, "clients change no settings of log and traces"),
    "auth_open": (("health",), "only health needs no token"),
}


def harden(given: dict[str, Any]) -> Sequence[str]:
    """If --secure is set, add to `given` the values of PROFILE for flags that are not in it.

    Return lines for the log about the flags of PROFILE; () without --secure.

    given   flag with underscores → value, for the flags that the user sets
    """
    if not given.get("secure"):
        return ()
    notes = []
    for name, (value, meaning) in PROFILE.items():
        flag = f"--{name.replace('_', '-')}"
        if name not in given:
            given[name] = value
            notes.append(f"--secure: {meaning}; {flag} says otherwise")
        elif given[name] != value:
            notes.append(f"--secure: {flag} was given and stays {_shown(given[name])}")
    return notes


def check(options: SharedOptions, listeners: Sequence[Listener]) -> None:
    """Raise CoreError(INVALID) if the flags contradict --secure.

    With --secure, callers must be authenticated, and each listener that other machines can reach must have
    TLS, unless --secure-without-tls is set. Without --secure, only --secure-without-tls is refused.
    """
    if options.secure_without_tls and not options.secure:
        raise invalid("--secure-without-tls has a meaning with --secure only")
    if not options.secure:
        return
    if not (options.auth_tokens or options.auth_jwks or _mutual(listeners)):
        raise invalid(
            "--secure needs to know who calls. Make a token and name its file:\n"
            "  core token NAME --role infer --file tokens.txt\n"
            "  core-serve --secure --auth-tokens=tokens.txt ...\n"
            "or name the keys of who issues JWT with --auth-jwks, or ask every client for a certificate "
            "with --http-use-ssl-mutual=true and --grpc-use-ssl-mutual=true (docs/operate/security.md)"
        )
    if options.secure_without_tls:
        return
    for each in listeners:
        if each.encrypted or is_local(each.address):
            continue
        if each.without_tls:
            raise invalid(f"--secure: {each.without_tls}")
        raise invalid(
            f"--secure: --{each.name}-address={each.address} can be reached from other machines; turn TLS "
            f"on with --{each.name}-use-ssl=true, or say --secure-without-tls if a proxy has it"
        )


def _mutual(listeners: Sequence[Listener]) -> bool:
    """Return whether every listener for inference demands a certificate of its clients; False without any."""
    inference = [each for each in listeners if each.inference]
    return bool(inference) and all(each.mutual for each in inference)


def is_local(address: str) -> bool:
    """Return whether only this machine can reach a listener at `address`.

    That is so for "unix:…", "localhost" and loopback addresses; other host names count as public.
    """
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
