"""The child's end of the channel.

Any thread may send. One thread at a time reads: the main thread while it waits for work, a thread that
waits for a reply, or a thread that asks whether its request was cancelled. The reading thread passes every
frame to its receiver, so any thread may read and no dedicated reader is needed: a batch wakes only the main
thread. Coroutines that await a called model do need a reader thread, since their own thread must continue.
That thread sleeps while no coroutine awaits a call.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from backend_python import arena, protocol
from backend_python.child.messages import Parts
from backend_python.child.outgoing import Closed, Outgoing
from backend_python.protocol import Frame

if TYPE_CHECKING:
    from backend_python.child.lent import Lending

_MOST_CANCELLED = 4096  # notices that are kept; the oldest are dropped first
_FAREWELL_S = 5.0  # time limit of finalize when the server has vanished
_RELEASES = 64  # freed regions that may wait for the next message before a message is sent for them


class Mailbox:
    """The frames that have arrived for one call and were not taken yet: content and region of each.

    arrived   wakes the coroutine that awaits the next frame; None if no coroutine does
    """

    __slots__ = ("arrived", "frames", "number")

    def __init__(self, number: int):
        self.number = number
        self.frames: deque[tuple[bytes, Any]] = deque()
        self.arrived: Callable[[], object] | None = None


class Connection(Outgoing):
    """The child's end of the channel: sending, receiving, and calls.

    Invariant: the thread that reads sets `_reading`, and only this thread receives and dispatches.
    """

    def __init__(self, sock: socket.socket, inputs: arena.Receiver, outputs: arena.Sender):
        super().__init__(sock, inputs, outputs)
        self._reader = protocol.reader(sock)
        self.lending: Lending | None = None  # of tensors on GPUs
        self._lock = threading.RLock()  # guards the fields below
        self._turn = threading.Condition(self._lock)
        self._waiting = 0  # threads in _wait
        self._reading = False
        self._work: deque[Frame] = deque()
        self._boxes: dict[int, Mailbox] = {}  # calls whose last frame has not come
        self._calls = 0
        self._awaited: set[Mailbox] = set()  # those that a coroutine awaits
        self._listens = False  # the thread that reads for coroutines has been started
        self._cancelled: dict[tuple[int, int], None] = {}  # (batch, index), oldest first
        self._asked: dict[tuple[int, int], Mailbox] = {}  # (batch, index) of a GO that will come
        self._closed = False

    def watch(self) -> None:
        """End the process soon after the server has gone, also while the model computes."""
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def close(self) -> None:
        """Stop sending and receiving, and end the threads of this class.

        The socket stays open, since other threads may still use it.
        """
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._close()
        self._held.close()

    def next_work(self) -> Frame:
        """Wait for the main thread's next frame and return it. Raise Closed if the channel is closed."""
        with self._lock:
            while self._reading and not self._work:
                self._wait()
            if self._work:
                return self._work.popleft()
            self._reading = True
        try:
            if self._held.messages:
                self.flush()
            while not self._work:
                self._receive()
        finally:
            self._stop_reading()
        return self._work.popleft()

    def may_hold(self, now_ns: int) -> bool:
        """Return whether an answer may wait for the next one, so that one message wakes the server for both.

        It may if the next batch is here already and no held answer has waited for long. Not thread-safe:
        call from the main thread only.
        """
        return bool(self._work) and self._held.may_wait(now_ns)

    def call(self, content: bytes) -> Mailbox:
        """Send a CALL and return the mailbox that receives its frames. Thread-safe."""
        return self._with_box(lambda number: self.send(protocol.CALL, number, content))

    def infer(self, parts: Parts, fields: bytes) -> Mailbox:
        """Send an INFER and return the mailbox that receives its frames. Thread-safe."""
        length = protocol.LENGTH.pack(len(parts.layout))
        return self._with_box(
            lambda number: self.send_tensors(protocol.INFER, number, length, parts, fields)
        )

    def ask(self, key: tuple[int, int]) -> Mailbox:
        """Return the mailbox for the GO to a RESPOND with ASKS. Send that RESPOND next. Thread-safe."""
        with self._lock:
            box = self._asked[key] = Mailbox(0)
        return box

    def _with_box(self, send: Callable[[int], None]) -> Mailbox:
        with self._lock:
            self._calls += 1
            box = self._boxes[self._calls] = Mailbox(self._calls)
        try:
            send(box.number)
        except BaseException:
            self._boxes.pop(box.number, None)
            raise
        return box

    def stop(self, box: Mailbox) -> None:
        """Ask the server to cancel a call. Answers that it still sends are delivered."""
        if box.number in self._boxes:
            self.send(protocol.STOP, box.number, protocol.INDEX.pack(0))

    def drop(self, box: Mailbox) -> None:
        """Cancel a call and discard its remaining frames.

        Destructors may call this, so it waits for no lock. While another message is being sent, the STOP is
        sent with that message or directly after it.
        """
        self._dropped.append(box.number)
        self._tell_dropped()

    def _forgets(self, number: int) -> bool:
        return self._boxes.pop(number, None) is not None

    def wait(self, box: Mailbox) -> tuple[bytes, Any]:
        """Wait for the next frame of a mailbox and return its content and region.

        Raise Closed if the channel is closed. Any thread may call this, but one thread for each mailbox.
        """
        while True:
            with self._lock:
                while self._reading and not box.frames and not self._closed:
                    self._wait()
                if box.frames:
                    return box.frames.popleft()
                if self._closed:
                    raise Closed
                self._reading = True
            try:
                while not box.frames:
                    self._receive()
            finally:
                self._stop_reading()

    async def arrival(self, box: Mailbox) -> tuple[bytes, Any]:
        """Await the next frame of a mailbox and return its content and region."""
        import asyncio  # not at the top: it takes longer to import than all the rest of a child

        loop = asyncio.get_running_loop()
        event = asyncio.Event()
        while True:
            with self._lock:
                if box.frames:
                    return box.frames.popleft()
                if self._closed:
                    raise Closed
                event.clear()
                box.arrived = partial(loop.call_soon_threadsafe, event.set)
                self._awaited.add(box)
                self._listen()
            try:
                await event.wait()
            finally:
                with self._lock:
                    self._awaited.discard(box)
                    box.arrived = None

    def _listen(self) -> None:
        if not self._listens:
            self._listens = True
            threading.Thread(target=self._read_for_coroutines, name="listen", daemon=True).start()
        self._notify()

    def _read_for_coroutines(self) -> None:
        while True:
            with self._lock:
                while (self._reading or not self._awaited) and not self._closed:
                    self._wait()
                if self._closed:
                    return
                self._reading = True
            try:
                while self._awaited:
                    self._receive()
            except Closed:
                return
            finally:
                self._stop_reading()

    def is_cancelled(self, key: tuple[int, int]) -> bool:
        """Return whether a request was cancelled. If no thread reads, receive what the channel has first."""
        if key in self._cancelled:
            return True
        with self._lock:
            if self._reading or self._closed:
                return key in self._cancelled
            self._reading = True
        try:
            while select.select([self._sock], [], [], 0)[0]:
                self._receive()
        except Closed:
            pass  # threads that wait for work or a reply get Closed too
        finally:
            self._stop_reading()
        return key in self._cancelled

    def _wait(self) -> None:
        self._waiting += 1
        try:
            self._turn.wait()
        finally:
            self._waiting -= 1

    def _notify(self) -> None:
        if self._waiting:
            self._turn.notify_all()

    def _stop_reading(self) -> None:
        with self._lock:
            self._reading = False
            self._notify()

    def _receive(self) -> None:
        """Receive once and dispatch the frames. Call only while this thread reads."""
        try:
            alive = not self._closed and self._reader.receive()
        except OSError:
            alive = False
        if not alive:
            self._close()
            raise Closed
        while (frame := self._reader.next()) is not None:
            if frame.released:
                with self._sending:
                    self._out.free(frame.released)
                self._tell_what_came_meanwhile()
            self._dispatch(frame)
        if len(self._in.released) >= _RELEASES:
            self.send(protocol.RELEASED)

    def _close(self) -> None:
        """Mark the channel as closed and wake every waiter."""
        with self._lock:
            self._closed = True
            for box in list(self._awaited):
                self._wake(box)
            self._notify()

    def _dispatch(self, frame: Frame) -> None:
        if frame.kind == protocol.CANCEL:
            (index,) = protocol.INDEX.unpack(frame.content)
            if len(self._cancelled) >= _MOST_CANCELLED:
                del self._cancelled[next(iter(self._cancelled))]
            self._cancelled[frame.number, index] = None
        elif frame.kind == protocol.REPLY:
            self._deliver(frame, b"", True)
        elif frame.kind == protocol.INFERRED:
            fixed = protocol.ANSWER
            offset, size, _, flags = fixed.unpack_from(frame.content)
            region, _, stop = self._in.tensors(frame.content, fixed.size, offset, size)
            told = Frame(frame.kind, frame.number, (), frame.content[:stop])
            if flags & protocol.LENT and self.lending is not None:
                region = self.lending.answered(told.content, region)
            self._deliver(told, region, bool(flags & protocol.FINAL))
        elif frame.kind == protocol.GO:
            (index,) = protocol.INDEX.unpack(frame.content)
            with self._lock:
                if (box := self._asked.pop((frame.number, index), None)) is not None:
                    box.frames.append((b"", None))
                    self._notify()
        elif frame.kind != protocol.RELEASE:
            with self._lock:
                self._work.append(frame)
                self._notify()

    def _deliver(self, frame: Frame, region: Any, final: bool) -> None:
        """Put a frame into its mailbox. Without a mailbox the frame is dropped and its region released."""
        with self._lock:
            box = self._boxes.pop(frame.number, None) if final else self._boxes.get(frame.number)
            if box is not None:
                box.frames.append((frame.content, region))
                self._wake(box)
                self._notify()

    def _wake(self, box: Mailbox) -> None:
        self._awaited.discard(box)
        if box.arrived is not None:
            with contextlib.suppress(RuntimeError):  # its loop has been closed
                box.arrived()

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._sock, 0)  # POLLHUP comes unasked; nothing else wakes this thread
        poll.poll()
        threading.Event().wait(_FAREWELL_S)
        os._exit(1)
