"""The server's end of a channel while the model runs.

Not thread-safe: call from the event loop only.

A batch costs one send and one wake-up. `begin` writes EXECUTE itself, and the reader callback passes each
message to `executions`. On EXECUTED, that passes the answers to the batch before it reports the end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from backend_python import protocol
from backend_python.protocol import Frame, ProtocolError
from backend_python.server.active import AHEAD, Active, Done
from backend_python.server.errors import unhealthy
from backend_python.server.executions import Executions
from backend_python.server.model import PythonModel
from backend_python.server.nested import NestedCalls
from backend_python.server.outbox import Outbox
from backend_python.server.process import Process
from backend_python.server.readiness import Readiness
from backend_python.server.requests import COPIED_ON_THE_LOOP, Encoder, Parts, write
from core.batch import Batch
from core.errors import CoreError, internal

logger = logging.getLogger("core")


class Connection:
    """The connection to a child. It sends batches and takes answers until the child dies or `detach`.

    died     called once when the child must not be used any more
    again    called after the child's end, for each batch that the child had not begun
    ahead    called with the number of batches that the child may have at a time; this may be unchanged
    """

    def __init__(
        self,
        process: Process,
        loop: asyncio.AbstractEventLoop,
        model: PythonModel,
        died: Callable[[], None],
        again: Callable[[Batch, Done], None],
        ahead: Callable[[int], None],
    ):
        self.process = process
        self._loop = loop
        self._died = died
        self._again = again
        self._ahead = ahead
        self._outbox = outbox = Outbox(process, loop)
        self.executions = Executions(process, loop, model.decoupled, outbox, self._tell_ahead)
        self._behind: dict[int, Active] = {}  # batches that a dying child may not have begun
        self._lending = process.lending  # lends tensors on GPUs; None if there are no GPUs
        self._encoder = Encoder(model.outputs, model.states, self._lending)
        self._copying = False  # a batch is being copied on a thread
        self.alive = True
        self.detached = False
        self.was_busy = False  # at `detach`, the child was executing or computing
        self.readiness = Readiness(process.name, outbox.send, self._executes)
        self.ended: Future[None] = Future()  # done when a child has ended; never for a detached one
        self._nested = NestedCalls(model.models, process, loop, outbox, self.executions)
        loop.add_reader(process.sock.fileno(), self._readable)
        loop.add_reader(process.pidfd, self._ended)
        loop.call_soon(self._take_frames)  # frames that arrived with the answer to INITIALIZE

    def _tell_ahead(self) -> None:
        self._ahead(AHEAD if self.executions.short and self.alive and not self._copying else 1)

    def begin(self, batch: Batch, done: Done) -> None:
        """Run a batch. Call done(None) when the child's execute has returned or the batch has failed.

        If the child dies before it begins the batch, pass both to `again` instead.
        """
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
        self._copying = True  # the next batch must not overtake it
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
        """Copy a large batch's tensors to the arena on another thread. `_copied` then sends the batch."""
        inputs = self.process.inputs
        offset = inputs.allocate(parts.size)
        self._copying = True  # the next batch must not overtake it
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
        outbox = self._outbox
        hold = outbox.together > 1 or len(self.executions) > 1
        outbox.send_tensors(protocol.EXECUTE, active.number, length, parts, offset, hold)
        active.batch.on_cancel(active.cancelled)

    def detach(self) -> None:
        """Stop listening and return the channel to a thread that may block."""
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
            self._outbox.release()
        elif kind == protocol.FAILED:
            self.executions.failed(frame)
        elif kind == protocol.LOG:
            self.process.log(frame)
        elif kind == protocol.CALL:
            self.process.answer(frame)
        elif kind == protocol.INFER:
            self._nested.begin(frame)
            self._outbox.release()
        elif kind == protocol.STOP:
            self._nested.stop(frame)
        elif kind == protocol.ABANDONED:
            self.executions.abandoned(frame)
        elif kind == protocol.TOLD:
            self.readiness.answered(frame)
        elif kind == protocol.RELEASED:
            pass  # the regions were freed in _take_frames
        else:
            raise ProtocolError(f"message of kind {kind}")

    # the end -----------------------------------------------------------------

    def _lost(self, why: str = "") -> None:
        """Kill the child, for the reason `why` if the channel is not closed. A second call does nothing.

        Fail its batches, except those that it may not have begun: `_ended` fails these or passes them to
        `again`.
        """
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
