"""IncomingMessages: the memory of a WebSocket's messages until its session takes them.

AiohttpConnection ─► bytes ─► [IncomingMessages] ─► Share;  WebSocketSession takes whole messages

aiohttp collects a message, and does not say how much of it has come. So this reads the heads of the frames,
counts their content, and subtracts that of each message that the session gets.
"""

from __future__ import annotations

from collections.abc import Callable

from core.system.account import UNCOUNTED, Share
from frontends.http.request_timeouts import UnfinishedRequest

_CONTROL, _MASKED, _LENGTH = 0x08, 0x80, 0x7F  # bits of the two bytes that begin a frame
_SIZES = {126: 2, 127: 8}  # lengths for which that many bytes with the real length follow
_MASK_BYTES = 4


class IncomingMessages:
    """The bytes of one WebSocket that are not taken yet. Not thread-safe: call from the event loop only.

    share       of the connection. It is charged for all content once it is more than UNCOUNTED
    exhausted   called once, when the share cannot be charged; the connection then drops what comes
    waits       whether the session waits for a message. The session sets it
    is_over     whether the share was exhausted
    """

    def __init__(self, share: Share, exhausted: Callable[[], None]):
        self.waits = False
        self.is_over = False
        self._share = share
        self._exhausted = exhausted
        self._frames = _FrameSizes()
        self._held = 0  # bytes of content that are not taken
        self._charged = 0
        self._taken = 0  # messages
        self._begun = 0  # bytes of the message that comes now, with the heads of its fragments

    def came(self, data: bytes) -> None:
        """Count bytes that aiohttp has received: all of the connection, in their order."""
        content, of_messages = self._frames.read(data)
        self._begun += of_messages
        self._count(self._held + content)

    def take(self, size: int, *, is_control: bool) -> None:
        """Subtract a message whose content has `size` bytes. is_control: it may be amid another message."""
        self._count(max(0, self._held - size))
        if not is_control:
            self._taken += 1
            self._begun = self._held

    def unfinished(self) -> UnfinishedRequest | None:
        """Return the message of which a part is missing; None without one, and for a small one."""
        if not self.waits or not self._charged:
            return None
        return UnfinishedRequest(True, float(self._taken), self._begun)

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


class _FrameSizes:
    """Reads how long the frames of a WebSocket are."""

    def __init__(self) -> None:
        self._left = 0  # bytes of content that the last frame still lacks
        self._is_control = False  # whether that is a ping, a pong or a close
        self._head = b""  # the begin of a head that is not complete

    def read(self, data: bytes) -> tuple[int, int]:
        """Return how many bytes of content the data has, and how many bytes of messages, with their heads."""
        if self._head:
            data = self._head + data
        size, at, is_control = len(data), self._left, self._is_control
        heads, controls = 0, at if is_control else 0
        while size - at >= 2:  # at a head; few steps, since frames may be very small
            second = data[at + 1]
            length = second & _LENGTH
            begin = at + 2 + _MASK_BYTES if second & _MASKED else at + 2
            if length in _SIZES:
                begin += _SIZES[length]
                length = int.from_bytes(data[at + 2 : at + 2 + _SIZES[length]], "big")
            if begin > size:
                break
            heads += begin - at
            if is_control := data[at] & _CONTROL != 0:
                controls += begin - at + length
            at = begin + length
        self._left, self._is_control, self._head = max(0, at - size), is_control, data[at:]
        come = min(at, size)
        return come - heads, come - controls + (self._left if is_control else 0)
