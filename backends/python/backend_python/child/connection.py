"""The child's end of the channel.

Any thread may send. One thread at a time reads: the main thread while it waits for work, a thread that
waits for a reply, or a thread that checks whether its request is cancelled. The reading thread passes every
frame to its receiver, so any thread may read and no dedicated reader is needed: a batch wakes only the main
thread. Coroutines that await a called model do need a reader thread, since their own thread must continue.
That thread sleeps while no coroutine awaits a call.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from backend_python import arena, protocol
from backend_python.child.mailboxes import Key, Mailbox
from backend_python.child.messages import Parts
from backend_python.child.outgoing import Closed, Outgoing
from backend_python.protocol import Frame

if TYPE_CHECKING:
    from backend_python.child.lent import Lending

T = TypeVar("T")

_MOST_CANCELLED = 4096  # notices that are kept; the oldest are dropped first
_RELEASES = 64  # freed regions that may wait for the next message before a message is sent for them
_WORK = {  # kinds of frames for the main thread
    protocol.EXECUTE,
    protocol.ASK,
    protocol.INITIALIZE,
    protocol.COMPLETE,
    protocol.FINALIZE,
}


class Turn:
    """The turn to read the channel, which one thread has at a time. `lock` guards it.

    taken   a thread reads
    """

    __slots__ = ("_changed", "_waiting", "lock", "taken")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.taken = False
        self._changed = threading.Condition(self.lock)
        self._waiting = 0  # threads in `wait`

    def wait(self) -> None:
        """Wait until a frame has arrived or the turn is free. The caller holds the lock exactly once."""
        self._waiting += 1
        try:
            self._changed.wait()
        finally:
            self._waiting -= 1

    def notify(self) -> None:
        """Wake every thread in `wait`. The caller holds the lock."""
        if self._waiting:
            self._changed.notify_all()

    def end(self) -> None:
        """End this thread's turn to read, and wake the threads in `wait`, so that one of them reads."""
        with self.lock:
            self.taken = False
            self.notify()


class Connection(Outgoing):
    """The child's end of the channel: it sends as an Outgoing, receives, and calls the server.

    Invariant: the thread that reads has the turn, and only this thread receives and dispatches.
    """

    def __init__(self, sock: socket.socket, inputs: arena.Receiver, outputs: arena.Sender):
        super().__init__(sock, inputs, outputs)
        self._reader = protocol.reader(sock)
        self.lending: Lending | None = None  # of tensors on GPUs
        self._turn = Turn()
        self._lock = self._turn.lock  # guards the fields below and the mailboxes
        self._work: deque[Frame] = deque()
        self._listens = False  # the thread that reads for coroutines has been started
        self._cancelled: dict[tuple[int, int], None] = {}  # (batch, index), oldest first
        self._closed = False

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
        if self._held.messages and not self._work:
            self.flush()
        return self._next(self._work)

    def may_hold(self, now_ns: int) -> bool:
        """Return whether an answer may wait for the next one, so that one message wakes the server for both.

        It may if the next batch has arrived and no held answer has waited for long. Not thread-safe: call
        from the main thread only.
        """
        return bool(self._work) and self._held.may_wait(now_ns)

    def call(self, content: bytes) -> Mailbox:
        """Send a CALL and return the mailbox that receives its frames. Thread-safe."""
        return self._begin_call(lambda number: self.send(protocol.CALL, number, content))

    def infer(self, parts: Parts, fields: bytes) -> Mailbox:
        """Send an INFER and return the mailbox that receives its frames. Thread-safe."""
        length = protocol.LENGTH.pack(len(parts.layout))
        return self._begin_call(
            lambda number: self.send_tensors(protocol.INFER, number, length, parts, fields)
        )

    def _begin_call(self, send: Callable[[int], None]) -> Mailbox:
        with self._lock:
            box = self._mailboxes.add_call()
        try:
            send(box.number)
        except BaseException:
            self._mailboxes.forget(box.number)
            raise
        return box

    def ask(self, key: tuple[int, int]) -> Mailbox:
        """Return the mailbox for the GO to a RESPOND with ASKS. Send that RESPOND next. Thread-safe."""
        with self._lock:
            return self._mailboxes.add_ask(key)

    def stop(self, box: Mailbox) -> None:
        """Ask the server to cancel a call that is not over. Answers that still arrive are delivered."""
        if box in self._mailboxes:
            self.send(protocol.STOP, box.number, protocol.INDEX.pack(0))

    def wait(self, box: Mailbox) -> tuple[bytes, Any]:
        """Wait for the next frame of a mailbox and return its content and region.

        Raise Closed if the channel is closed. Any thread may call this, but one thread for each mailbox.
        """
        return self._next(box.frames)

    def _next(self, arriving: deque[T]) -> T:
        """Wait until the deque has an item, and pop it. No other thread may take items from the deque."""
        with self._lock:
            while self._turn.taken and not arriving and not self._closed:
                self._turn.wait()
            if arriving:
                return arriving.popleft()
            if self._closed:
                raise Closed
            self._turn.taken = True
        try:
            while not arriving:
                self._receive()
        finally:
            self._turn.end()
        return arriving.popleft()

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
                self._mailboxes.await_next(box, partial(loop.call_soon_threadsafe, event.set))
                self._listen()
            try:
                await event.wait()
            finally:
                with self._lock:
                    self._mailboxes.stop_awaiting(box)

    def _listen(self) -> None:
        if not self._listens:
            self._listens = True
            threading.Thread(target=self._read_for_coroutines, name="listen", daemon=True).start()
        self._turn.notify()

    def _read_for_coroutines(self) -> None:
        while True:
            with self._lock:
                while (self._turn.taken or not self._mailboxes.awaited) and not self._closed:
                    self._turn.wait()
                if self._closed:
                    return
                self._turn.taken = True
            try:
                while self._mailboxes.awaited:
                    self._receive()
            except Closed:
                return
            finally:
                self._turn.end()

    def is_cancelled(self, key: tuple[int, int]) -> bool:
        """Return whether a request was cancelled. If no thread reads, receive the available frames first."""
        if key in self._cancelled:
            return True
        with self._lock:
            if self._turn.taken or self._closed:
                return key in self._cancelled
            self._turn.taken = True
        try:
            while select.select([self._sock], [], [], 0)[0]:
                self._receive()
        except Closed:
            pass  # threads that wait for work or a reply get Closed too
        finally:
            self._turn.end()
        return key in self._cancelled

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
            self._mailboxes.wake_all()
            self._turn.notify()

    def _dispatch(self, frame: Frame) -> None:
        kind = frame.kind
        if kind in _WORK:
            with self._lock:
                self._work.append(frame)
                self._turn.notify()
        elif kind == protocol.CANCEL:
            (index,) = protocol.INDEX.unpack(frame.content)
            if len(self._cancelled) >= _MOST_CANCELLED:
                del self._cancelled[next(iter(self._cancelled))]
            self._cancelled[frame.number, index] = None
        elif kind == protocol.REPLY:
            self._deliver(frame.number, frame.content, b"", True)
        elif kind == protocol.INFERRED:
            fixed = protocol.ANSWER
            offset, size, _, flags = fixed.unpack_from(frame.content)
            region, _, stop = self._in.tensors(frame.content, fixed.size, offset, size)
            content = frame.content[:stop]
            if flags & protocol.LENT and self.lending is not None:
                region = self.lending.answered(content, region)
            self._deliver(frame.number, content, region, bool(flags & protocol.FINAL))
        elif kind == protocol.GO:
            (index,) = protocol.INDEX.unpack(frame.content)
            self._deliver((frame.number, index), b"", None, True)

    def _deliver(self, key: Key, content: bytes, region: Any, final: bool) -> None:
        with self._lock:
            self._mailboxes.deliver(key, content, region, final)
            self._turn.notify()
