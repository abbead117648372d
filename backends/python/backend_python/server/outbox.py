"""The messages to a child while the event loop has its channel.

Connection, Executions, NestedCalls ─► [Outbox] ─► the channel.

Not thread-safe, unless stated otherwise: call from the event loop only. A message is sent at once if the
channel takes it. Held messages are sent together at the end of this turn of the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from backend_python import protocol
from backend_python.arena import ALIGNMENT
from backend_python.server.process import Process
from backend_python.server.requests import Parts, write
from core.native.arrays import joined
from core.native.frames import message

_RELEASES = 64  # freed regions that may wait for the next message before a RELEASE is sent for them


class Outbox:
    """The sending side of a channel. It takes over the child's socket, which then does not block.

    together   number of held messages that were sent together last time
    """

    def __init__(self, process: Process, loop: asyncio.AbstractEventLoop):
        self.together = 1
        self._process = process
        self._sock = process.sock
        self._loop = loop
        self._held: list[bytes] = []
        self._flushing = False
        self._unsent: deque[memoryview] = deque()  # bytes that the socket has not accepted yet
        self._closed = False
        self._releasing = False  # a RELEASE is about to be sent
        process.sock.setblocking(False)
        process.write = self.write
        if process.lending is not None:
            process.lending.borrower.came_back = self._release_soon

    def send(self, kind: int, number: int = 0, content: bytes = b"") -> None:
        """Send a message, which also reports freed regions of the child. After `close`, do nothing."""
        if not self._closed:
            released = self._process.outputs.drain_released(protocol.MOST_RELEASED)
            self.write(protocol.frame(kind, number, content, released))

    def send_tensors(
        self,
        kind: int,
        number: int,
        fixed: bytes,
        parts: Parts,
        offset: int | None,
        hold: bool = False,
    ) -> None:
        """Send a message about tensors. After `close`, do nothing.

        fixed    the fixed part between the place of the region and the layout
        offset   of the region, if the tensors were already copied there; else None
        hold     True to send it together with other messages of this turn of the loop
        """
        if self._closed:
            return
        process = self._process
        size = parts.size
        inline = b""
        if offset is None:
            if not size:
                offset = 0
            elif size < protocol.INLINE_BELOW:
                offset, inline = protocol.INLINE, joined(parts.tensors, ALIGNMENT)
            else:
                offset = process.inputs.allocate(size)
                write(process.inputs.memory, offset, parts.tensors)
        released = process.outputs.drain_released(protocol.MOST_RELEASED)
        place = protocol.PLACE.pack(offset, size)
        whole = message(kind, number, released, [place, fixed, parts.layout, parts.fields, inline])
        if not hold:
            self.write(whole)
            return
        self._held.append(whole)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def release(self) -> None:
        """Send RELEASE if many freed regions have not been reported to the child yet."""
        if len(self._process.outputs.released) >= _RELEASES:
            self.send(protocol.RELEASE)

    def _release_soon(self) -> None:
        """Schedule a RELEASE on the event loop, because a loan of the child has ended. Thread-safe."""
        if not self._releasing:
            self._releasing = True
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the child with it
                self._loop.call_soon_threadsafe(self._release_all)

    def _release_all(self) -> None:
        self._releasing = False
        if self._process.outputs.released:
            self.send(protocol.RELEASE)

    def flush(self) -> None:
        """Send the held messages, if any, and set `together` to their number."""
        self._flushing = False
        self.together = len(self._held)
        if self._held:
            self.write(b"")

    def write(self, message: bytes) -> None:
        """Send the held messages, then this one. What the channel does not take now is sent later."""
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
