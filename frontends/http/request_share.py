"""RequestShare: what one request holds of the memory that its connection may hold.

service ─► [RequestShare] ─► Share ─► MemoryAccount.  Whoever answers the request closes it when the answer
has left, so that a service need not give anything back.
"""

from __future__ import annotations

import sys

from core.account import UNCOUNTED, MemoryAccount, Share


class RequestShare:
    """What one request holds. Event loop thread only.

    held     bytes that it has taken and not given back
    unpaid   bytes of decompressed data that it has taken beyond what it paid for
    """

    __slots__ = ("_share", "held", "unpaid")

    def __init__(self, share: Share):
        self._share = share
        self.held = 0
        self.unpaid = 0

    def take(self, size: int, what: str) -> None:
        """Take `size` bytes for `what`, which the error names. Raises MemoryExhausted."""
        self._share.take(size, what)
        self.held += size

    def take_large(self, size: int, what: str) -> None:
        """`take`, if `size` is more than what is not worth to be counted."""
        if size > UNCOUNTED:
            self.take(size, what)

    def give(self, size: int) -> None:
        """Give back `size` bytes that were taken."""
        self._share.give(size)
        self.held -= size

    def take_unpaid(self, size: int, what: str) -> None:
        """Take `size` bytes of `what` that decompression made and the sender did not pay for. Raises
        MemoryExhausted."""
        self._share.take_unpaid(size, what)
        self.unpaid += size

    def give_unpaid(self, size: int) -> None:
        """Give back `size` bytes that `take_unpaid` took."""
        self._share.give_unpaid(size)
        self.unpaid -= size

    def close(self) -> None:
        """Give back everything. What is closed may be closed again."""
        if self.held:
            self.give(self.held)
        if self.unpaid:
            self.give_unpaid(self.unpaid)


def boundless() -> RequestShare:
    """Make one of a request that came on no connection: it may hold any number of bytes."""
    return RequestShare(MemoryAccount(sys.maxsize, sys.maxsize).share())
