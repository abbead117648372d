"""BucketTable: where the allowances of all callers are counted, by one process or by all workers.

    supervisor ─► [file] ─► each worker maps it.  No message is sent for a request.

Its size is fixed. So that it is never a way around limits, no bucket is thrown away while it is not full:
who comes when all places are taken shares the bucket of its network, and at last that of all others.
"""

from __future__ import annotations

import ipaddress
import mmap
import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from core.native.buckets import Buckets, bytes_for

WINDOW = 16  # slots in which the one of a caller may be
_SECRET_BYTES = 16  # so that nobody can choose addresses or names that fall into one window
_HEAD_BYTES = 64
_RESERVE = 16  # slots for all who find no place


class Sizes(NamedTuple):
    """How many buckets there are, for each kind of caller."""

    callers: int = 8192
    addresses: int = 16384
    networks: int = 4096


@dataclass(frozen=True)
class Place:
    """Where the bucket of a caller may be.

    text   who shares it, in an error
    """

    text: str
    first: int
    count: int
    key: int


class BucketTable:
    """The buckets of one server. Loop thread only.

    file      descriptor of memory that `shared_file` has made; it may be closed afterwards. None for memory
              of this process alone
    workers   how many share it
    worker    which one of them this process is, from 0 on
    """

    def __init__(
        self,
        file: int | None = None,
        workers: int = 1,
        worker: int = 0,
        sizes: Sizes = Sizes(),  # noqa: B008
    ):
        self._callers = range(sizes.callers)
        self._addresses = range(sizes.callers, sizes.callers + sizes.addresses)
        self._networks = range(self._addresses.stop, self._addresses.stop + sizes.networks)
        self._reserve = range(self._networks.stop, self._networks.stop + _RESERVE)
        slots, size = self._reserve.stop, _bytes(sizes, workers)
        if file is None:
            memory = mmap.mmap(-1, size)
            memory[:_SECRET_BYTES] = secrets.token_bytes(_SECRET_BYTES)
        else:
            memory = mmap.mmap(file, size)
        self._secret = bytes(memory[:_SECRET_BYTES])
        self.buckets = Buckets(memoryview(memory)[_HEAD_BYTES:], slots, workers, worker)

    def places(self, name: str, limits: str, *, known: bool) -> Iterator[Place]:
        """Give the places for the bucket of a caller, the best first. The last one always has room.

        name     of a caller, or an address
        limits   that it has: with other limits a caller has another bucket
        known    whether it has shown who it is
        """
        if known:
            yield self._place(f"caller '{name}'", self._callers, limits)
            yield self._place("group 'other callers'", self._reserve, limits)
            return
        yield self._place(f"address '{name}'", self._addresses, limits)
        if (network := network_around(name)) is not None:
            yield self._place(f"network '{network}'", self._networks, limits)
        yield self._place("group 'other addresses'", self._reserve, limits)

    def _place(self, text: str, slots: range, limits: str) -> Place:
        digest = blake2b(f"{text} {limits}".encode(), key=self._secret, digest_size=16).digest()
        count = min(WINDOW, len(slots))
        start = int.from_bytes(digest[8:], "little") % (len(slots) - count + 1)
        return Place(text, slots.start + start, count, int.from_bytes(digest[:8], "little") or 1)


def shared_file(workers: int, sizes: Sizes = Sizes()) -> int:  # noqa: B008
    """Make the memory that the tables of so many workers share; its descriptor. Raises OSError."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("core-limits", os.MFD_CLOEXEC)
    else:  # not Linux
        file, path = tempfile.mkstemp(prefix="core-limits-")
        os.unlink(path)
    os.ftruncate(file, _bytes(sizes, workers))
    os.pwrite(file, secrets.token_bytes(_SECRET_BYTES), 0)
    return file


def _bytes(sizes: Sizes, workers: int) -> int:
    return _HEAD_BYTES + bytes_for(sum(sizes) + _RESERVE, workers)


def network_around(address: str) -> str | None:
    """Return the network that many addresses of one owner lie in: /24 of IPv4, /48 of IPv6.

    None for what is no address, such as a Unix domain socket.
    """
    host = address.partition("/")[0]
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return str(ipaddress.ip_network((found, 24 if found.version == 4 else 48), strict=False))
