"""Credentials: what a caller shows, in the words of `Authorization` and `x-api-key` (RFC 6750)."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from core.errors import Unauthenticated

MOST_CHARACTERS = 16 * 1024  # of a token; no issuer makes longer ones


@dataclass(frozen=True, slots=True)
class Credentials:
    """What one caller shows.

    secret    a token or a key, "" for none; never in a log, never in an error
    address   that the call comes from, without a port; whoever shows nothing is known by it
    """

    secret: str = field(default="", repr=False)
    address: str = ""

    @classmethod
    def of(
        cls, authorizations: Sequence[str], keys: Sequence[str], address: str = ""
    ) -> Credentials:
        """From every `authorization` and every `x-api-key` of a call.

        Raises Unauthenticated for what is not one of them, once, in a form that is known.
        """
        shown = len(authorizations) + len(keys)
        if not shown:
            return cls("", address)
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
        return cls(secret, address)


def network_of(address: str) -> str:
    """By what a caller who shows nothing is known: an address of IPv4, or the network of one of IPv6.

    A network of 64 bits is what one customer gets: who is known by one address of IPv6 has as many names
    as it likes. What is no address stays as it is.
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
