"""Addresses of a host: resolved once, judged, and connected to as they are.

A name that resolves to another address the next time (DNS rebinding) therefore gains nothing.
"""

from __future__ import annotations

import contextlib
import ipaddress
import queue
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

from backend_video.stop import Stop
from core.errors import CoreError, forbidden, invalid, unavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_TRANSLATED = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_LOOK_S = 0.05  # how often a thread that waits for a resolver looks whether its request is over


def is_public(address: Address) -> bool:
    """Return whether an address, and the IPv4 address inside it if any, belongs to the public Internet."""
    if isinstance(address, ipaddress.IPv6Address):
        teredo = address.teredo
        inner = [address.ipv4_mapped, address.sixtofour, teredo[1] if teredo else None]
        if any(address in each for each in (*_TRANSLATED, _COMPATIBLE)):
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        for each in inner:
            if each is not None:
                return is_public(each)
    return address.is_global and not address.is_multicast


def is_allowed(address: Address, networks: Sequence[Network]) -> bool:
    """Return whether a request may connect to an address: public, or in one of the networks."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    return is_public(address) or any(
        address.version == each.version and address in each for each in networks
    )


def resolve(
    host: str, port: int, networks: Sequence[Network], stop: Stop, timeout_s: float
) -> list[Any]:
    """Return (family, socket address) of each allowed address of a host; at least one.

    Raises CoreError: FORBIDDEN if no address is allowed, UNAVAILABLE if there is none, INVALID if `host`
    cannot be a name; and Stopped.
    """
    found = [(family, place) for family, _, _, _, place in _look_up(host, port, stop, timeout_s)]
    allowed = [
        each
        for each in found
        if is_allowed(ipaddress.ip_address(str(each[1][0]).partition("%")[0]), networks)
    ]
    if not allowed:
        raise forbidden(
            f"host '{host}' has no public address; a model connects to another one only if its parameter "
            "'networks' in config.pbtxt contains it"
        )
    return allowed


def connect(host: str, addresses: Sequence[Any], stop: Stop, timeout_s: float) -> socket.socket:
    """Return a socket that is connected to the first address that accepts, and known to `stop`.

    timeout_s   for each address; it stays the timeout of the socket
    Raises CoreError(UNAVAILABLE) with the last error, and Stopped.
    """
    problem: OSError | None = None
    for family, place in addresses:
        made = socket.socket(family, socket.SOCK_STREAM)
        made.settimeout(timeout_s)
        stop.add(made)
        try:
            made.connect(place)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            stop.remove(made)
            made.close()
            stop.check()
            problem = error
        else:
            return made
    raise unavailable(f"cannot connect to '{host}' port {addresses[-1][1][1]}: {reason(problem)}")


def reason(error: BaseException | None) -> str:
    """Return the text of an error of a socket, without its number."""
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _look_up(host: str, port: int, stop: Stop, timeout_s: float) -> list[Any]:
    """Return what getaddrinfo returns. It cannot be broken off, so it runs on a thread of its own."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except UnicodeError:
        raise invalid(
            f"'{host}' is no name of a host; expected parts of 1 to 63 characters between dots"
        ) from None
    except socket.gaierror:
        pass  # a name
    done: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            done.put(error)

    threading.Thread(target=run, name="video resolver", daemon=True).start()
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        with contextlib.suppress(queue.Empty):
            found = done.get(timeout=_LOOK_S)
            if isinstance(found, OSError):
                raise _unknown(host, reason(found))
            return found
        stop.check()
    raise _unknown(host, f"no answer in {timeout_s:g} s")


def _unknown(host: str, text: str) -> CoreError:
    return unavailable(f"host '{host}' has no address: {text}")
