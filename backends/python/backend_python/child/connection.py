"""The child's end of the channel.

Any thread may send. One thread at a time reads: the main thread while it waits for work, or a thread
that waits for a reply, or that asks whether its request was cancelled. Who reads hands every frame to
where it belongs, so nothing depends on which thread it was, and there is no thread just for reading:
a batch wakes the main thread and no other.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from backend_python import arena, protocol
from backend_python.protocol import Frame

_MOST_CANCELLED = 4096  # notices that are kept; the oldest go first
_FAREWELL_S = 5.0  # what finalize gets when the server has vanished


class Closed(Exception):
    """The server has closed the channel, or died."""


class Connection:
    """Invariants:

    1. `_reading` is set by the thread that reads, and only it receives and dispatches.
    2. `_sending` guards the socket's writing side and `_out`, the arena that answers are written to:
       a region is allocated, filled and announced in one go.
    """

    def __init__(self, sock: socket.socket, inputs: arena.Receiver, outputs: arena.Sender):
        self._sock = sock
        self._reader = protocol.Reader(sock)
        self._in = inputs
        self._out = outputs
        # Reentrant: a collected object of the model may log from its __del__ while we send.
        self._sending = threading.RLock()
        self._turn = threading.Condition()  # guards the fields below
        self._reading = False
        self._work: deque[Frame] = deque()
        self._replies: dict[int, Any] = {}  # calls that wait: number → None, then their Frame
        self._calls = 0
        self._cancelled: dict[tuple[int, int], None] = {}  # (batch, index), oldest first
        self._closed = False

    def watch(self) -> None:
        """End the process soon after the server has gone, also while the model computes."""
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    # sending ---------------------------------------------------------------

    def send(
        self,
        kind: int,
        number: int = 0,
        content: bytes = b"",
        *,
        size: int = 0,
        fill: Callable[[memoryview, int, int], bytes] | None = None,
    ) -> None:
        """Send a message. With `fill`, allocate a region of `size` bytes for it first;
        fill(memory, offset, size) writes the region and returns the content."""
        with self._sending:
            if fill is not None:
                offset = self._out.allocate(size) if size else 0
                content = fill(self._out.memory, offset, size)
            released = self._in.drain_released(protocol.MOST_RELEASED)
            try:
                self._sock.sendall(protocol.frame(kind, number, content, released))
            except OSError:
                raise Closed from None

    # receiving -------------------------------------------------------------

    def next_work(self) -> Frame:
        """The next frame for the main thread; waits. Closed when the channel is."""
        with self._turn:
            while self._reading and not self._work:
                self._turn.wait()
            if self._work:
                return self._work.popleft()
            self._reading = True
        try:
            while not self._work:
                self._receive()
        finally:
            self._stop_reading()
        return self._work.popleft()

    def call(self, content: bytes) -> Frame:
        """Ask the server and wait for its REPLY. Any thread."""
        with self._turn:
            self._calls += 1
            number = self._calls
            self._replies[number] = None
        self.send(protocol.CALL, number, content)
        while True:
            with self._turn:
                while self._reading and self._replies[number] is None and not self._closed:
                    self._turn.wait()
                if self._replies[number] is not None:
                    reply: Frame = self._replies.pop(number)
                    return reply
                if self._closed:
                    raise Closed
                self._reading = True
            try:
                while self._replies[number] is None:
                    self._receive()
            finally:
                self._stop_reading()

    def is_cancelled(self, key: tuple[int, int]) -> bool:
        """Whether the notice for that request has come; looks at the channel if nobody does."""
        if key in self._cancelled:
            return True
        with self._turn:
            if self._reading or self._closed:
                return key in self._cancelled
            self._reading = True
        try:
            while select.select([self._sock], [], [], 0)[0]:
                self._receive()
        except Closed:
            pass  # who waits for work or a reply finds out too
        finally:
            self._stop_reading()
        return key in self._cancelled

    def _stop_reading(self) -> None:
        with self._turn:
            self._reading = False
            self._turn.notify_all()

    def _receive(self) -> None:
        """Receive once and hand out what came. Only while this thread reads."""
        try:
            alive = not self._closed and self._reader.receive()
        except OSError:
            alive = False
        if not alive:
            self._closed = True
            raise Closed
        for frame in self._reader.frames():
            if frame.released:
                with self._sending:
                    self._out.free(frame.released)
            self._dispatch(frame)

    def _dispatch(self, frame: Frame) -> None:
        if frame.kind == protocol.CANCEL:
            (index,) = protocol.INDEX.unpack(frame.content)
            if len(self._cancelled) >= _MOST_CANCELLED:
                del self._cancelled[next(iter(self._cancelled))]
            self._cancelled[frame.number, index] = None
        elif frame.kind == protocol.REPLY:
            with self._turn:
                self._replies[frame.number] = frame
                self._turn.notify_all()
        elif frame.kind != protocol.RELEASE:
            with self._turn:
                self._work.append(frame)
                self._turn.notify_all()

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._sock, 0)  # POLLHUP comes unasked; nothing else wakes this thread
        poll.poll()
        threading.Event().wait(_FAREWELL_S)
        os._exit(1)
