"""The messages that are being sent to a child.

Connection ─► [Outbox] ─► the channel.

Not thread-safe: call from the event loop only. A message is sent at once if the channel takes it. Held
messages are sent together at the end of this turn of the loop.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque


class Outbox:
    """The sending side of a channel, whose socket does not block.

    together   number of held messages that were sent together last time
    """

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop):
        self.together = 1
        self._sock = sock
        self._loop = loop
        self._held: list[bytes] = []
        self._flushing = False
        self._unsent: deque[memoryview] = deque()  # what the socket would not take yet
        self._closed = False

    def hold(self, message: bytes) -> None:
        """Send a message together with others of this turn of the loop: the child wakes once for all."""
        self._held.append(message)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send the held messages."""
        self._flushing = False
        self.together = len(self._held)
        if self._held:
            self.write(b"")

    def write(self, message: bytes) -> None:
        """Send a message, after those that are held."""
        if self._closed:
            return
        if self._held:
            message = b"".join((*self._held, message))
            self._held.clear()
        sent = 0
        if not self._unsent:
            try:
                sent = self._sock.send(message)
            except BlockingIOError:
                pass
            except OSError:
                return  # the child has died: the reader callback reports that
            if sent == len(message):
                return
            self._loop.add_writer(self._sock.fileno(), self._writable)
        self._unsent.append(memoryview(message)[sent:])

    def close(self) -> bytes:
        """Stop sending, and return the bytes that the channel has not taken."""
        self._closed = True
        self._loop.remove_writer(self._sock.fileno())
        return b"".join(self._unsent)

    def _writable(self) -> None:
        try:
            while self._unsent:
                sent = self._sock.send(self._unsent[0])
                if sent < len(self._unsent[0]):
                    self._unsent[0] = self._unsent[0][sent:]
                    return
                self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()
        self._loop.remove_writer(self._sock.fileno())
