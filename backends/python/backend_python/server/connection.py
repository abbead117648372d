"""The server's end of a channel while the model runs.

Not thread-safe: call from the event loop only.

A batch costs one send and one wake-up. `begin` writes EXECUTE itself, and the reader callback passes each
message to `executions`. On EXECUTED, that gives the answers to the batch before it reports the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import partial
from typing import Any

from backend_python import protocol
from backend_python.arena import ALIGNMENT
from backend_python.protocol import Frame, ProtocolError
from backend_python.server.active import AHEAD, Active, Done
from backend_python.server.errors import unhealthy
from backend_python.server.executions import Executions
from backend_python.server.nested import NestedCalls
from backend_python.server.outbox import Outbox
from backend_python.server.process import Process
from backend_python.server.readiness import Readiness
from backend_python.server.requests import COPIED_ON_THE_LOOP, Encoder, Parts, write
from core.batch import Batch
from core.errors import CoreError, internal
from core.native.arrays import joined
from core.native.frames import message

logger = logging.getLogger("core")

_RELEASES = 64  # freed regions that may wait for the next message before a RELEASE is sent for them


class Connection:
    """The connection to a child. It sends batches and takes answers until the child dies or `detach`.

    died     called once when the child must not be used any more
    again    called after the child's end, for each batch that the child had not begun
    ahead    called with the number of batches that the child may have, when it changes, of a model whose
             requests run one by one
    outputs  names of the model's outputs
    states   names of the outputs that renew states of a sequence
    server   the server whose models the model may call; None if it may call none
    """

    def __init__(
        self,
        process: Process,
        loop: asyncio.AbstractEventLoop,
        decoupled: bool,
        died: Callable[[], None],
        again: Callable[[Batch, Done], None],
        ahead: Callable[[int], None],
        outputs: Collection[str],
        states: Collection[str],
        server: Any = None,
    ):
        self.process = process
        self._loop = loop
        self._died = died
        self._again = again
        self._ahead = ahead
        self.executions = Executions(
            process, loop, decoupled, self._cancel, self._go, self._tell_ahead
        )
        self._behind: dict[int, Active] = {}  # batches that a dying child may not have begun
        self._lending = process.lending  # lends tensors on GPUs; None if there are no GPUs
        self._encoder = Encoder(outputs, states, self._lending)
        self._copying = False  # a batch is being copied on a thread
        self._letting_go = False  # a RELEASE is about to be sent
        self.alive = True
        self.detached = False
        self.was_busy = False  # at `detach`, the child was executing or computing
        self.readiness = Readiness(process.name, self._send, self._executes)
        self.ended: Future[None] = Future()  # done when a child has ended; never for a detached one
        self._nested = NestedCalls(
            server, process, loop, self._send, self._send_tensors, self.executions
        )
        process.sock.setblocking(False)
        self._outbox = Outbox(process.sock, loop)
        process.write = self._outbox.write
        if self._lending is not None:
            self._lending.borrower.came_back = self._let_go_soon
        loop.add_reader(process.sock.fileno(), self._readable)
        loop.add_reader(process.pidfd, self._ended)
        loop.call_soon(self._take_frames)  # frames that came with the answer to INITIALIZE

    def _tell_ahead(self) -> None:
        self._ahead(AHEAD if self.executions.short and self.alive and not self._copying else 1)

    def begin(self, batch: Batch, done: Done) -> None:
        """Run a batch. Call done(None) when the child's execute has returned or the child has died."""
        if self._lending is not None and self._lending.brings(batch.requests):
            self._begin_there(batch, done)
            return
        parts = self._encoder.batch(batch.requests)
        active = self.executions.begin(batch, done)
        if parts.size <= COPIED_ON_THE_LOOP:
            self._execute(active, parts, None)
        else:
            self._copy(active, parts)

    def _begin_there(self, batch: Batch, done: Done) -> None:
        """Run a batch that has inputs on a GPU. Encode it on a thread, since that may wait for the GPU."""
        active = self.executions.begin(batch, done)
        self._copying = True  # the next must not overtake it
        self._tell_ahead()
        encoding = self._loop.run_in_executor(None, self._encoder.batch_there, batch.requests)
        encoding.add_done_callback(partial(self._encoded, active))

    def _encoded(self, active: Active, encoding: asyncio.Future[Parts]) -> None:
        self._copying = False
        error = encoding.exception()
        if error is None:
            parts = encoding.result()
            if parts.size <= COPIED_ON_THE_LOOP or active.done is None or not self.alive:
                self._execute(active, parts, None)
            else:
                self._copy(active, parts)
        elif active.done is not None:
            problem = error if isinstance(error, CoreError) else internal(repr(error))
            self.executions.refuse(active, problem)
        self._tell_ahead()

    def _copy(self, active: Active, parts: Parts) -> None:
        """Copy the tensors of a large batch on a thread, then send it."""
        inputs = self.process.inputs
        offset = inputs.allocate(parts.size)
        self._copying = True  # the next must not overtake it
        self._tell_ahead()
        copying = self._loop.run_in_executor(None, write, inputs.memory, offset, parts.tensors)
        copying.add_done_callback(lambda _: self._copied(active, parts, offset))

    def _copied(self, active: Active, parts: Parts, offset: int) -> None:
        self._copying = False
        self._tell_ahead()
        self._execute(active, parts, offset)

    def _execute(self, active: Active, parts: Parts, offset: int | None) -> None:
        if active.done is None or not self.alive:  # the child died during the copy
            return
        length = protocol.LENGTH.pack(len(parts.layout))
        self._send_tensors(protocol.EXECUTE, active.number, length, parts, offset)
        active.batch.on_cancel(active.cancelled)

    def detach(self) -> None:
        """Stop listening and give the channel back to a thread that may block."""
        if self.alive:
            self.detached = True
            self.was_busy = self._executes() or self.readiness.waits
            self.readiness.close()
            self._nested.close(telling=True)
            self._outbox.flush()
            self.alive = False
            self._loop.remove_reader(self.process.sock.fileno())
            self._loop.remove_reader(self.process.pidfd)
            self.process.unsent = self._outbox.close()
            self.process.sock.setblocking(True)
            self.process.write = self.process.write_now

    def end(self, reason: str) -> None:
        """Kill a child that is stuck. `reason` is for the log and the errors."""
        logger.error("'%s' %s; it is killed", self.process.name, reason)
        self._lost(f"'{self.process.name}' {reason}")

    def fail_all(self) -> None:
        """Fail every batch that still waits for the child. Call when the child is not used any more."""
        self._fail_behind()
        self.executions.fail_all(unhealthy(self.process.name))
        self.executions.tell_finished()

    def _executes(self) -> bool:
        return self.executions.current() is not None

    # sending -----------------------------------------------------------------

    def _send(self, kind: int, number: int = 0, content: bytes = b"") -> None:
        released = self.process.outputs.drain_released(protocol.MOST_RELEASED)
        self._outbox.write(protocol.frame(kind, number, content, released))

    def _send_tensors(
        self, kind: int, number: int, fixed: bytes, parts: Parts, offset: int | None
    ) -> None:
        """Send a message about tensors.

        fixed    the fixed part between the place of the region and the layout
        offset   of the region, if the tensors were already copied there; else None
        """
        size = parts.size
        inline = b""
        if offset is None:
            if not size:
                offset = 0
            elif size < protocol.INLINE_BELOW:
                offset, inline = protocol.INLINE, joined(parts.tensors, ALIGNMENT)
            else:
                offset = self.process.inputs.allocate(size)
                write(self.process.inputs.memory, offset, parts.tensors)
        released = self.process.outputs.drain_released(protocol.MOST_RELEASED)
        place = protocol.PLACE.pack(offset, size)
        content = [place, fixed, parts.layout, parts.fields, inline]
        whole = message(kind, number, released, content)
        if kind == protocol.EXECUTE and (self._outbox.together > 1 or len(self.executions) > 1):
            self._outbox.hold(whole)
        else:
            self._outbox.write(whole)

    def _cancel(self, number: int, i: int) -> None:
        if self.alive:
            self._send(protocol.CANCEL, number, protocol.INDEX.pack(i))

    # receiving ---------------------------------------------------------------

    def _readable(self) -> None:
        try:
            alive = self.process.reader.receive()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            alive = False
        if alive:
            self._take_frames()
        else:
            self._lost()

    def _take_frames(self) -> None:
        try:
            while (frame := self.process.reader.next()) is not None:
                if frame.released:
                    self.process.inputs.free(frame.released)
                self._handle(frame)
        except Exception as error:  # no message of a child may harm the server
            logger.error("'%s' sent what is no message: %r", self.process.name, error)
            self._lost(f"'{self.process.name}' sent what is no message")
        self.executions.tell_finished()

    def _handle(self, frame: Frame) -> None:
        kind = frame.kind
        if kind == protocol.EXECUTED:
            self.executions.executed(frame)
        elif kind == protocol.RESPOND:
            self.executions.respond(frame)
            self._release()
        elif kind == protocol.FAILED:
            self.executions.failed(frame)
        elif kind == protocol.LOG:
            self.process.log(frame)
        elif kind == protocol.CALL:
            self.process.answer(frame)
        elif kind == protocol.INFER:
            self._nested.begin(frame)
            self._release()
        elif kind == protocol.STOP:
            self._nested.stop(frame)
        elif kind == protocol.ABANDONED:
            self.executions.abandoned(frame)
        elif kind == protocol.TOLD:
            self.readiness.told(frame)
        elif kind == protocol.RELEASED:
            pass  # the regions were freed in _take_frames
        else:
            raise ProtocolError(f"message of kind {kind}")

    def _go(self, number: int, i: int) -> None:
        """Report to the child that the client of a request has room for more answers."""
        self._send(protocol.GO, number, protocol.INDEX.pack(i))

    def _release(self) -> None:
        """Send RELEASE if many freed regions have not been reported to the child yet."""
        if len(self.process.outputs.released) >= _RELEASES:
            self._send(protocol.RELEASE)

    def _let_go_soon(self) -> None:
        """Schedule a RELEASE after GPU memory of the child was returned. Thread-safe."""
        if not self._letting_go:
            self._letting_go = True
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the child with it
                self._loop.call_soon_threadsafe(self._let_go)

    def _let_go(self) -> None:
        self._letting_go = False
        if self.alive and self.process.outputs.released:
            self._send(protocol.RELEASE)

    # the end -----------------------------------------------------------------

    def _lost(self, why: str = "") -> None:
        """Give the child up and fail its batches: the channel is closed, or `why` is a reason to kill it."""
        if not self.alive:
            return
        self.alive = False
        self._tell_ahead()
        self._loop.remove_reader(self.process.sock.fileno())
        self._outbox.close()
        if self._lending is not None:
            self._lending.close()
        self.process.kill_soon(why)
        self._nested.close(telling=False)
        self.readiness.close()
        self._behind = self.executions.take_behind()
        self.executions.fail_all(unhealthy(self.process.name))
        self._died()
        self.executions.tell_finished()

    def _ended(self) -> None:
        """Handle the end of the process, also if a process that it started holds the channel open."""
        self._loop.remove_reader(self.process.pidfd)
        self._lost()
        begun, ending = self.process.outputs.mark, self.process.ending
        self.process.close()  # after this, its last output is in the log
        logger.error("%s (%s)", unhealthy(self.process.name).message, ending)
        self.ended.set_result(None)
        unbegun = {n: self._behind.pop(n) for n in list(self._behind) if n > begun}
        self._fail_behind()  # the child had begun these
        self.executions.tell_finished()
        for one in unbegun.values():
            done, one.done = one.done, None
            if done is not None:
                self._again(one.batch, done)

    def _fail_behind(self) -> None:
        failing, self._behind = self._behind, {}
        self.executions.fail(failing.values(), unhealthy(self.process.name))
