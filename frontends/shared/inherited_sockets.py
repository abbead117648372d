"""Listening sockets that a worker inherits from its supervisor, which has opened them for all workers.

supervisor ─► descriptors ─► [inherit] ─► [listeners_at] ─► the frontends of a worker

Workers always inherit Unix domain sockets. They inherit ports only in the portable form
(core/system/platform.py): otherwise each worker binds the port with SO_REUSEPORT, and Linux divides the
connections evenly.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

_files: dict[str, Sequence[int]] = {}  # written once, before any listener opens


def address_of(host: str, port: int) -> str:
    """Return host:port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def inherit(address: str, files: Sequence[int]) -> None:
    """Keep the descriptors that listen at an address for `listeners_at`; child processes do not get them.

    address   as of `address_of`, or "unix:" and a path
    """
    for file in files:
        os.set_inheritable(file, False)  # child processes of models must not inherit it
    _files[address] = files


def is_inherited(address: str) -> bool:
    """Return whether the supervisor listens at `address` for all workers."""
    return address in _files


def listeners_at(address: str) -> list[socket.socket]:
    """Return a new non-blocking socket for each descriptor that is inherited for `address`; [] without one.

    The sockets are duplicates: the caller closes them, and the descriptors stay open.
    """
    found = [socket.socket(fileno=os.dup(file)) for file in _files.get(address, ())]
    for each in found:
        each.setblocking(False)
    return found
