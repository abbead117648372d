"""RequestShare: one request's part of the memory that its connection may hold.

service ─► [RequestShare] ─► Share ─► MemoryAccount.  The sender of the response closes it when the response
has been sent, so that a service need not release anything.
"""

from __future__ import annotations

import sys

from core.system.account import UNCOUNTED, MemoryAccount, Share


class RequestShare:
    """The memory that one request holds. Not thread-safe: call from the event loop only."""

    __slots__ = ("_share", "held", "unpaid")

    def __init__(self, share: Share):
        self._share = share
        self.held = 0  # bytes taken and not given back
        self.unpaid = 0  # decompressed bytes taken beyond those that compressed bytes paid for

    def take(self, size: int, what: str) -> None:
        """Take `size` bytes of the connection's share. Raises MemoryExhausted, which names them as `what`."""
        self._share.take(size, what)
        self.held += size

    def take_large(self, size: int, what: str) -> None:
        """Take `size` bytes if they are more than UNCOUNTED; else count nothing. Raises MemoryExhausted."""
        if size > UNCOUNTED:
            self.take(size, what)

    def give(self, size: int) -> None:
        self._share.give(size)
        self.held -= size

    def take_unpaid(self, size: int, what: str) -> None:
        """Count `size` decompressed bytes of `what` beyond those that its compressed size allows.

        Raises MemoryExhausted.
        """
        self._share.take_unpaid(size, what)
        self.unpaid += size

    def close(self) -> None:
        """Give back everything. Idempotent."""
        if self.held:
            self.give(self.held)
        if self.unpaid:
            self._share.give_unpaid(self.unpaid)
            self.unpaid = 0


def boundless() -> RequestShare:
    """Return the share of a request without a connection: it may hold any number of bytes."""
    return RequestShare(MemoryAccount(sys.maxsize, sys.maxsize).share())
