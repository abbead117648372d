"""The half of a child's end of the channel that sends.

main, host, messages ─► [Outgoing] ─► the socket.  Any thread may send. What goes along with the next message
(regions that are released, calls that nobody wants any more) may come from destructors, in the middle of
another send: it waits for no lock, and whoever sends looks for it once more behind the message.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque

from backend_python import arena, protocol
from backend_python.child import messages
from backend_python.child.held import Held
from backend_python.child.messages import Parts
from backend_python.compiled import joined, message


class Closed(Exception):
    """The server has closed the channel, or died."""


class Outgoing:
    """Invariant: `_sending` guards the socket's writing side and `_out`, the arena that answers are written
    to: a region is allocated, filled and announced in one go.

    answering   EXECUTED is the next message, and takes along what is released
    executing   the batch that has been begun last, or None
    thread      that executes
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
        self._dropped: deque[int] = deque()  # calls whose answers nobody wants, not told yet
        # Requests that nothing can answer any more, not told yet: batch, index.
        self._abandoned: deque[tuple[int, int]] = deque()
        self._owes = False  # the model holds less of what is lent, which is not told yet

    def begin(self, batch: int) -> None:
        """From now on that batch is executed: should the process end, it is not executed again."""
        self.executing = batch
        self._out.mark(batch)

    def send(self, kind: int, number: int = 0, content: bytes = b"") -> None:
        """Send a message. Any thread."""
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
        """Send a message about tensors. Any thread.

        fixed    what stands between the place of the region and the layout
        hold     it may wait for the next message, or some milliseconds
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
                    messages.write(self._out.memory, offset, parts.tensors)
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
        """What the next message takes along; all that comes later has to be told anew."""
        self._owes = False
        return self._in.drain_released(protocol.MOST_RELEASED)

    def _tell_what_came_meanwhile(self) -> None:
        """From other threads and destructors, while a message was being sent."""
        if self._dropped or self._abandoned:
            self._tell_dropped()
        if self._owes:
            self._tell_released()

    def flush(self) -> None:
        """Send what is held. Any thread."""
        with self._sending, contextlib.suppress(Closed):  # who reads finds out
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
        """A STOP for each call that was dropped before its end, and an ABANDONED for each request."""
        stops = b""
        while self._abandoned:
            batch, index = self._abandoned.popleft()
            stops += protocol.frame(protocol.ABANDONED, batch, protocol.INDEX.pack(index))
        while self._dropped:
            number = self._dropped.popleft()
            if self._forgets(number):
                stops += protocol.frame(protocol.STOP, number, protocol.INDEX.pack(1))
        return stops

    def abandon(self, key: tuple[int, int]) -> None:
        """Nothing can answer that request any more: tell it now, or, if somebody is sending, right behind
        that. For destructors too, so it waits for no lock."""
        self._abandoned.append(key)
        self._tell_dropped()

    def let_go(self) -> None:
        """The model holds less of what the server has lent: tell it now, or, if somebody is sending, right
        behind that. For destructors too, so it waits for no lock."""
        self._owes = True
        self._tell_released()

    def _tell_released(self) -> None:
        if not (self._within or self.answering) and self._sending.acquire(blocking=False):
            try:
                if not self._within:
                    with contextlib.suppress(Closed):
                        self.send(protocol.RELEASED)
            finally:
                self._sending.release()

    def _tell_dropped(self) -> None:
        if not self._within and self._sending.acquire(blocking=False):
            try:
                if not self._within:
                    with contextlib.suppress(Closed):
                        self._send_all(b"")
            finally:
                self._sending.release()
            if self._owes:
                self._tell_released()

    def _forgets(self, number: int) -> bool:
        """No answer to that call is taken any more; whether one was still to come."""
        raise NotImplementedError
