"""BucketTable: memory in which one process, or all workers together, count the requests of callers.

    supervisor ─► create_file ─► each worker maps the file (plugins/workers)

The size is fixed. A bucket that is not full is never dropped, so a full table does not weaken the limits: a
caller without a slot shares the bucket of its network, or else the bucket of all other callers.
"""

from __future__ import annotations

import ipaddress
import mmap
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from frontends.shared import system_memory
from frontends.shared.native.buckets import Buckets, bytes_for

WINDOW = 16  # number of slots that may hold the bucket of one caller
_SECRET_BYTES = 16  # prevents clients from choosing addresses or names that share one window
_HEAD_BYTES = 64
_RESERVE = 16  # slots for all callers without a slot of their own


class Sizes(NamedTuple):
    """Number of buckets for each kind of caller."""

    callers: int = 8192
    addresses: int = 16384
    networks: int = 4096


@dataclass(frozen=True)
class BucketRange:
    """Slots that may hold the bucket of a caller."""

    text: str  # name of the owner of the bucket, in errors
    first: int  # slot
    count: int  # of slots
    key: int  # of the bucket


class BucketTable:
    """The buckets of one server. Loop thread only.

    file      descriptor from `create_file`, which the caller may close after the constructor; None for
              memory of this process alone
    workers   number of processes that share the memory
    worker    number of this process among them, from 0 on
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

    @staticmethod
    def create_file(workers: int, sizes: Sizes = Sizes()) -> int:  # noqa: B008
        """Create the memory that the tables of all workers share; return its descriptor. Raises OSError."""
        file = system_memory.unnamed_memory("core-limits", _bytes(sizes, workers))
        os.pwrite(file, secrets.token_bytes(_SECRET_BYTES), 0)
        return file

    def clear(self, worker: int) -> None:
        """Remove the requests in flight that worker number `worker` has counted, because it has ended."""
        self.buckets.clear(worker)

    def ranges(self, name: str, limits: str, *, known: bool) -> Iterator[BucketRange]:
        """Yield the ranges of slots that may hold the bucket of a caller, in order of preference.

        name     name of a known caller; address of any other caller
        limits   text of the caller's limits; the same caller has another bucket after they change
        known    whether a token or a certificate identifies the caller
        """
        if known:
            yield self._range(f"caller '{name}'", self._callers, limits)
            yield self._range("group 'other callers'", self._reserve, limits)
            return
        yield self._range(f"address '{name}'", self._addresses, limits)
        if (network := network_around(name)) is not None:
            yield self._range(f"network '{network}'", self._networks, limits)
        yield self._range("group 'other addresses'", self._reserve, limits)

    def _range(self, text: str, slots: range, limits: str) -> BucketRange:
        digest = blake2b(f"{text} {limits}".encode(), key=self._secret, digest_size=16).digest()
        count = min(WINDOW, len(slots))
        start = int.from_bytes(digest[8:], "little") % (len(slots) - count + 1)
        return BucketRange(
            text, slots.start + start, count, int.from_bytes(digest[:8], "little") or 1
        )


def _bytes(sizes: Sizes, workers: int) -> int:
    return _HEAD_BYTES + bytes_for(sum(sizes) + _RESERVE, workers)


def network_around(address: str) -> str | None:
    """Return the network of an address: /24 for IPv4, /48 for IPv6.

    None if `address` is not an IP address or network, such as "unix".
    """
    host = address.partition("/")[0]
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return str(ipaddress.ip_network((found, 24 if found.version == 4 else 48), strict=False))
