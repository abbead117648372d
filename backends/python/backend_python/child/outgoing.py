"""The half of a child's end of the channel that sends.

main, host, messages ─► [Outgoing] ─► the socket.

Any thread may send. Some notices are sent with the next message: released regions, dropped calls and
abandoned requests. Destructors add notices, also during another send, so these wait for no lock. The sending
thread checks for them once more after its message.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable

from backend_python import arena, protocol
from backend_python.child.held import Held
from backend_python.child.mailboxes import Mailbox, Mailboxes
from backend_python.child.messages import Parts
from backend_python.compiled import gather, joined, message


class Closed(Exception):
    """The server has closed the channel, or died."""


class Outgoing:
    """The sending half of the channel.

    Invariant: `_sending` guards the socket's writing side and `_out`, the arena of the answers. A region is
    allocated, filled and announced under one hold of the lock.

    answering   True if EXECUTED is the next message: no RELEASED is sent, because EXECUTED reports the same
    executing   number of the batch that was begun last, or None
    thread      the thread that executes
    """

    def __init__(self, sock: socket.socket, inputs: arena.Receiver, outputs: arena.Sender):
        self._sock = sock
        self._in = inputs
        self._out = outputs
        self.answering = False
        self.executing: int | None = None
        self.thread = threading.get_ident()
        # Reentrant: a collected object of the model may log from its __del__ while we send.
        self._sending = threading.RLock()
        self._within = False  # a send is under way, on the thread that holds _sending
        self._held = Held(self._sending, self.flush)
        self._mailboxes = Mailboxes()
        self._dropped: deque[int] = deque()  # dropped calls that were not reported yet
        # Requests that can no longer be answered and were not reported yet: batch, index.
        self._abandoned: deque[tuple[int, int]] = deque()
        self._owes = False  # the model has released loans that were not reported yet

    def begin(self, batch: int) -> None:
        """Mark a batch as begun. If the process ends, the server does not execute it again."""
        self.executing = batch
        self._out.mark(batch)

    def send(self, kind: int, number: int = 0, content: bytes = b"") -> None:
        """Send a message, which also reports the regions that this child has released. Thread-safe."""
        with self._sending:
            within, self._within = self._within, True
            try:
                self._send_all(protocol.frame(kind, number, content, self._released()))
            finally:
                self._within = within
        self._tell_what_came_meanwhile()

    def send_tensors(
        self,
        kind: int,
        number: int,
        fixed: bytes,
        parts: Parts,
        fields: bytes = b"",
        hold: bool = False,
    ) -> None:
        """Send a message about tensors. Thread-safe.

        fixed    the fixed part between the place of the region and the layout
        hold     True if it may wait for the next message, or for some milliseconds
        """
        size = parts.size
        offset, inline = 0, b""
        with self._sending:
            within, self._within = self._within, True
            try:
                if 0 < size < protocol.INLINE_BELOW:
                    offset, inline = protocol.INLINE, joined(parts.tensors, arena.ALIGNMENT)
                elif size:
                    offset = self._out.allocate(size)
                    gather(parts.tensors, self._out.memory, offset, arena.ALIGNMENT)
                released = self._released()
                place = protocol.PLACE.pack(offset, size)
                content = [place, fixed, parts.layout, fields, inline]
                whole = message(kind, number, released, content)
                if hold:
                    self._held.add(whole)
                else:
                    self._send_all(whole)
            finally:
                self._within = within
        self._tell_what_came_meanwhile()

    def _released(self) -> tuple[int, ...]:
        """Return the released regions for the next message. Later releases need another message."""
        self._owes = False
        return self._in.drain_released(protocol.MOST_RELEASED)

    def _tell_what_came_meanwhile(self) -> None:
        """Send the notices that other threads and destructors left while a message was being sent."""
        if self._dropped or self._abandoned:
            self._tell_dropped()
        if self._owes:
            self._tell_released()

    def flush(self) -> None:
        """Send the held messages; do nothing if the channel is closed. Thread-safe."""
        with self._sending, contextlib.suppress(Closed):  # the reading thread finds out
            self._send_all(b"")
        self._tell_what_came_meanwhile()

    def _send_all(self, message: bytes) -> None:
        if self._held.messages:
            message = self._held.take() + message
        if self._dropped or self._abandoned:
            message += self._stops()
        if not message:
            return
        try:
            self._sock.sendall(message)
        except OSError:
            raise Closed from None

    def _stops(self) -> bytes:
        """Return a STOP for each call dropped before its end and an ABANDONED for each abandoned request."""
        stops = b""
        while self._abandoned:
            batch, index = self._abandoned.popleft()
            stops += protocol.frame(protocol.ABANDONED, batch, protocol.INDEX.pack(index))
        while self._dropped:
            number = self._dropped.popleft()
            if self._mailboxes.forget(number):
                stops += protocol.frame(protocol.STOP, number, protocol.INDEX.pack(1))
        return stops

    def abandon(self, key: tuple[int, int]) -> None:
        """Report that a request can no longer be answered: now, or directly after a message being sent.

        Destructors may call this, so it waits for no lock.
        """
        self._abandoned.append(key)
        self._tell_dropped()

    def drop(self, box: Mailbox) -> None:
        """Cancel a call and discard its remaining frames.

        Destructors may call this, so it waits for no lock. While another message is being sent, the STOP is
        sent with that message or directly after it.
        """
        self._dropped.append(box.number)
        self._tell_dropped()

    def let_go(self) -> None:
        """Report that the model released loans of the server: now, or directly after a message being sent.

        Destructors may call this, so it waits for no lock.
        """
        self._owes = True
        self._tell_released()

    def _tell_released(self) -> None:
        if not self.answering:
            self._send_if_free(lambda: self.send(protocol.RELEASED))

    def _tell_dropped(self) -> None:
        if self._send_if_free(lambda: self._send_all(b"")) and self._owes:
            self._tell_released()

    def _send_if_free(self, send: Callable[[], None]) -> bool:
        """Call `send` and return True. If a message is being sent, return False: its sender checks later."""
        if self._within or not self._sending.acquire(blocking=False):
            return False
        try:
            if not self._within:
                with contextlib.suppress(Closed):
                    send()
        finally:
            self._sending.release()
        return True
