"""HostNames: the names by which callers may reach the port for operators, as they stand in `Host`.

A page of another site can have its own name point at this port (DNS rebinding). The browser then takes the
port for that site, and `Host` has its name. So without tokens, names are refused that such a site could have.
With TLS, the site has no certificate for its name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from core.errors import invalid
from frontends.shared.secure import is_local

ANY = "*"
_HOST = r"[a-z0-9_-]+(\.[a-z0-9_-]+)*"  # browsers send names in ASCII
# Names below these are not in the public DNS: machines, services of a cluster.
_PRIVATE = (".localhost", ".local", ".internal", ".svc")


class HostNames:
    """Names that a port answers to. Immutable.

    address   where the port listens
    listed    names of --admin-hosts; "*" permits every name
    """

    def __init__(self, address: str, listed: Sequence[str] = ()):
        self._is_local = is_local(address)
        self._listed = frozenset({address, *listed})

    def permit(self, authority: str) -> bool:
        """Return whether the port answers to a field `Host`, with or without its port."""
        name = _name(authority)
        if ANY in self._listed or (name and name in self._listed):
            return True
        return is_local(name) if self._is_local else _is_private(name)

    def refusal(self, authority: str) -> str:
        """Return why the port does not answer to a field `Host`."""
        if self._is_local:
            text = "a port of this machine only answers to localhost and loopback addresses"
        else:
            text = "this port only answers to addresses and names that are not in the public DNS"
        return (
            f"Host is '{authority}'; without --admin-tokens, {text}: name others in --admin-hosts"
        )


def read_host_names(text: str) -> tuple[str, ...]:
    """Return the names of --admin-hosts, which commas separate. Raises CoreError(INVALID)."""
    found = tuple(each.strip().lower().rstrip(".") for each in text.split(",") if each.strip())
    for each in found:
        if each != ANY and (_name(each) != each or not re.fullmatch(_HOST, each)):
            raise invalid(
                f"--admin-hosts: '{each}' is no host name; expected whole names without scheme and port, or "
                "'*' alone for all"
            )
    return found


def _name(authority: str) -> str:
    """Return the name or address in a field `Host` in lower case, without the port; "" if it has none."""
    try:
        return (urlsplit(f"//{authority}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_private(name: str) -> bool:
    """Return whether no other site can have this name: an address, or a name outside the public DNS."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return bool(name) and ("." not in name or name.endswith(_PRIVATE))
    return True
