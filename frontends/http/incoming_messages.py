"""IncomingMessages: the memory of a WebSocket's messages until its session takes them.

AiohttpConnection ─► sizes of bytes ─► [IncomingMessages] ─► Share;  WebSocketSession takes whole messages

aiohttp collects a message, and does not say how much of it has come. So this counts the bytes of the
connection, and subtracts those of each message that the session gets.
"""

from __future__ import annotations

from collections.abc import Callable

from core.system.account import UNCOUNTED, Share
from frontends.http.request_timeouts import UnfinishedRequest

_SHORTEST_HEAD, _LONGEST_HEAD = 2, 14  # bytes of a frame before its content
# Bytes of heads that a message in fragments may have: one for so many of its content, and the most of them.
_CONTENT_OF_HEAD = 64
_MOST_OF_HEADS = 256 * 1024  # as much as one read of a socket


class IncomingMessages:
    """The bytes of one WebSocket that are not taken yet. Not thread-safe: call from the event loop only.

    share       of the connection. It is charged for all bytes once they are more than UNCOUNTED
    exhausted   called once, when the share cannot be charged; the connection then drops what comes
    waits       whether the session waits for a message. The session sets it
    is_over     whether the share was exhausted
    """

    def __init__(self, share: Share, exhausted: Callable[[], None]):
        self.waits = False
        self.is_over = False
        self._share = share
        self._exhausted = exhausted
        self._held = 0  # bytes not taken; heads of fragments count until the message is taken
        self._charged = 0
        self._taken = 0  # messages
        self._had_waited = False  # whether the session waited when the last bytes came

    def came(self, size: int) -> None:
        """Count bytes that aiohttp has received."""
        self._had_waited = self.waits
        self._count(self._held + size)

    def take(self, size: int, *, is_control: bool) -> None:
        """Subtract a message whose content has `size` bytes. is_control: it may be amid another message."""
        self._taken += not is_control
        heads = 0 if is_control else min(size // _CONTENT_OF_HEAD, _MOST_OF_HEADS)
        if self._had_waited and not is_control:
            # Nothing was left when the session began to wait. What came with the end of this message, and
            # after it, is at most one read of the socket.
            self._count(0)
        elif self._held <= size + max(_LONGEST_HEAD, heads):
            # All that is left may be heads of its fragments, which nothing would subtract later.
            self._count(0)
        else:
            self._count(self._held - size - _SHORTEST_HEAD)
        self._had_waited = False

    def unfinished(self) -> UnfinishedRequest | None:
        """Return the message of which a part is missing; None without one, and for a small one."""
        if not self.waits or not self._charged:
            return None
        return UnfinishedRequest(True, float(self._taken), self._held)

    def close(self) -> None:
        """Give back everything. Idempotent."""
        self.is_over = True
        self._count(0)

    def _count(self, held: int) -> None:
        self._held = held
        charge = held if held > UNCOUNTED else 0
        if charge > self._charged and not self._share.try_take(charge - self._charged):
            if not self.is_over:
                self.is_over = True
                self._exhausted()
            return
        if charge < self._charged:
            self._share.give(self._charged - charge)
        self._charged = charge
