"""Credentials: the token of a call, from its headers `authorization` and `x-api-key` (RFC 6750)."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from frontends.shared.access.unauthenticated import Unauthenticated

MOST_CHARACTERS = 16 * 1024  # of a token; no issuer makes longer ones


def kind_and_name(text: str) -> tuple[str, str]:
    """Return "caller" or "address", and the name, of a Caller.text; ("", "") for other text."""
    kind, _, rest = text.partition(" '")
    return (kind, rest.removesuffix("'")) if kind in ("caller", "address") else ("", "")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of one call.

    secret        a token or a key, "" if the call has none; no log and no error shows it
    address       address of the client without a port; identifies a caller that has nothing else
    certificate   name in the certificate that the client has shown; identifies a caller without a secret
    """

    secret: str = field(default="", repr=False)
    address: str = ""
    certificate: str = ""

    @classmethod
    def of(
        cls,
        authorizations: Sequence[str],
        keys: Sequence[str],
        address: str = "",
        certificate: str = "",
    ) -> Credentials:
        """Return the credentials in the headers `authorization` and `x-api-key` of a call.

        Raises Unauthenticated if the call has more than one such header, if the scheme is not Bearer, or if
        the length of the token is invalid.
        """
        shown = len(authorizations) + len(keys)
        if not shown:
            return cls("", address, certificate)
        if shown > 1:
            raise Unauthenticated(
                f"{shown} credentials were shown; expected one 'authorization' or one 'x-api-key'",
                shown=True,
            )
        if keys:
            secret = keys[0]
        else:
            scheme, _, secret = authorizations[0].strip().partition(" ")
            if scheme.lower() != "bearer":
                raise Unauthenticated(
                    "'authorization' must be 'Bearer <token>'; it is of another scheme", shown=True
                )
        secret = secret.strip()
        if not 0 < len(secret) <= MOST_CHARACTERS:
            raise Unauthenticated(
                f"a token has 1 to {MOST_CHARACTERS} characters, the one shown has {len(secret)}",
                shown=True,
            )
        return cls(secret, address, certificate)


def network_of(address: str) -> str:
    """Return the name of a caller without a token: its IPv4 address, or the /64 network of its IPv6 address.

    One customer usually has a whole /64 network, and could otherwise use any number of names. The loopback
    address ::1 and text that is no address are returned unchanged.
    """
    return _network_of(address) if ":" in address else address


@lru_cache(1024)
def _network_of(address: str) -> str:
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    if found.is_loopback:
        return str(found)
    return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
