"""The batches in a child process, and its messages about them.

Not thread-safe: call from the event loop only.

Connection ─► begin; EXECUTED, RESPOND, FAILED ─► [Executions] ─► answers to requests, `done` of batches
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from backend_python import layout, protocol
from backend_python.items import Known
from backend_python.protocol import Frame, ProtocolError
from backend_python.server.active import Active, Done, Took, behind_the_first
from backend_python.server.answers import AnswerLayout, answer_item, give
from backend_python.server.errors import abandoned, failed
from backend_python.server.outbox import Outbox
from backend_python.server.process import Process
from core.batch import Batch
from core.errors import CoreError
from core.request import InferenceRequest
from core.tensor import Tensor


class Executions:
    """The batches of a child by their numbers. Only `tell_finished` calls their `done`.

    outbox   sends messages to the child
    paced    called when `short` has changed
    """

    def __init__(
        self,
        process: Process,
        loop: asyncio.AbstractEventLoop,
        decoupled: bool,
        outbox: Outbox,
        paced: Callable[[], None],
    ):
        self.worked = False  # the child has executed something
        self._process = process
        self._loop = loop
        self._decoupled = decoupled
        self._outbox = outbox
        self._paced = paced
        self._number = 0
        self._active: dict[int, Active] = {}
        self._layouts = Known(answer_item)
        self._finished: deque[Done] = deque()  # `done` of executions that are over, not called yet
        self._took = Took()

    def __len__(self) -> int:
        return len(self._active)

    @property
    def short(self) -> bool:
        """True if executions are so short that the child should have the next batch before one ends."""
        return self._took.short

    def begin(self, batch: Batch, done: Done) -> Active:
        """Register a batch. When its execution is over, the next `tell_finished` calls done(None)."""
        self._number += 1
        active = self._active[self._number] = Active(self._number, batch, done, self.cancelled)
        return active

    def current(self) -> int | None:
        """Return the number of the batch that the child executes now; None if there is none."""
        return next((n for n, one in self._active.items() if one.done is not None), None)

    def cancelled(self, number: int, i: int) -> None:
        """Report to the child that a request is cancelled, if it is still open."""
        active = self._active.get(number)
        if active is not None and i in active.open:
            self._outbox.send(protocol.CANCEL, number, protocol.INDEX.pack(i))

    def trace_of(self, number: int, i: int) -> Any:
        """Return the trace of a request, for the calls that belong to it; None if the request is over."""
        active = self._active.get(number)
        return active.batch.requests[i].trace if active is not None and i in active.open else None

    def outer_of(self, number: int, i: int | None) -> Sequence[InferenceRequest]:
        """Return the request that a call belongs to; if `i` is None, all of its batch.

        Empty if the batch is over.
        """
        active = self._active.get(number)
        if active is None:
            return ()
        return active.batch.requests if i is None else [active.batch.requests[i]]

    def tell_finished(self) -> None:
        """Call `done` of the executions that are over.

        Do not call this while a frame is handled: the pipeline may begin the next batch.
        """
        while self._finished:
            self._finished.popleft()(None)

    # messages of the child: these raise if a message is malformed ---------------

    def executed(self, frame: Frame) -> None:
        """Handle EXECUTED: execute has returned. Pass the answers that it returned to the batch, if any."""
        active = self._active[frame.number]
        content = frame.content
        offset, size, start, end = protocol.DONE.unpack_from(content)
        region, at, stop = self._process.outputs.tensors(content, protocol.DONE.size, offset, size)
        answers = AnswerLayout(self._layouts.of(content[protocol.DONE.size : stop], size))
        batch = active.batch
        batch.compute_start_ns = start
        batch.compute_end_ns = end
        if self._took.add(end - start):
            self._paced()
        if len(answers.items) != len(batch.requests):
            raise ProtocolError(f"{len(answers.items)} answers to {len(batch.requests)} requests")
        tensors: list[list[Any]] = answers.tensors(region, at)
        if answers.lent:
            self._borrow(answers, tensors)
        if answers.plain and active.whole:
            batch.respond_all(tensors)
            active.close()
        else:
            self._answer_each(active, answers.items, tensors)
        self._over(frame.number, active)

    def respond(self, frame: Frame) -> None:
        """Handle RESPOND: one answer of a response sender, or only the end of its answers."""
        content = frame.content
        offset, size, i, flags = protocol.ANSWER.unpack_from(content)
        fixed = protocol.ANSWER.size
        region, at, stop = self._process.outputs.tensors(content, fixed, offset, size)
        answers = AnswerLayout(self._layouts.of(content[fixed:stop], size))
        active = self._active.get(frame.number)
        if active is None or i not in active.open:
            if flags & protocol.ASKS:
                self._go(frame.number, i)
            if answers.lent:  # take the loans, so that they are returned
                self._borrow(answers, answers.tensors(region, at))
            return  # it was answered when its batch failed
        if flags & protocol.ASKS:
            # After the answers, which the delivery passes on in a later turn of the loop.
            request = active.batch.requests[i]
            self._loop.call_soon(request.when_free, partial(self._go, frame.number, i))
        (answer,) = answers.items
        final = bool(flags & protocol.FINAL) or not self._decoupled
        if isinstance(answer, layout.Answer):
            found = answers.tensors(region, at)
            if answers.lent:
                self._borrow(answers, found)
            (tensors,) = found
            give(active.batch, i, answer, tensors, final)
        else:
            final = True
            active.batch.finish(i)
        if final:
            active.open.discard(i)
        self._forget_if_over(frame.number, active)

    def _go(self, number: int, i: int) -> None:
        """Send GO for request `i` of a batch, because its client can take more answers."""
        self._outbox.send(protocol.GO, number, protocol.INDEX.pack(i))

    def abandoned(self, frame: Frame) -> None:
        """Handle ABANDONED: fail a request that the child can no longer answer."""
        (i,) = protocol.INDEX.unpack(frame.content)
        active = self._active.get(frame.number)
        if active is None or i not in active.open:
            return  # it has had its last answer, as a failure of its batch
        active.open.discard(i)
        active.batch.fail(i, abandoned(active.batch.signature), failure=True)
        self._forget_if_over(frame.number, active)

    def _borrow(self, answers: AnswerLayout, tensors: list[list[Any]]) -> None:
        """Replace those of `tensors` that are loans by the GPU tensors that the child lends."""
        lending = self._process.lending
        if lending is None:
            raise ProtocolError("tensors that are lent, where nobody has GPUs")
        lending.borrow(answers, tensors)

    def failed(self, frame: Frame) -> None:
        """Handle FAILED: execute has raised or returned an invalid value. Fail the batch's open requests."""
        active = self._active.get(frame.number)
        if active is None:
            return
        _, _, start, end = protocol.DONE.unpack_from(frame.content)
        if active.done is not None:
            active.batch.compute_start_ns = start
            active.batch.compute_end_ns = end
        text = frame.content[protocol.DONE.size :].decode("utf-8", "replace")
        _fail(active, failed(self._process.name, text))
        self._over(frame.number, active)

    # the end ---------------------------------------------------------------------

    def refuse(self, active: Active, error: CoreError) -> None:
        """Forget a batch that is not sent to the child, and fail it with `error`."""
        self._active.pop(active.number, None)
        self.fail([active], error)
        self.tell_finished()

    def take_behind(self) -> dict[int, Active]:
        """Remove and return the batches that the child may not have begun (see `behind_the_first`)."""
        return behind_the_first(self._active)

    def fail_all(self, error: CoreError) -> None:
        """Remove all batches and fail their open requests, because the child is gone."""
        failing, self._active = self._active, {}
        self.fail(failing.values(), error)

    def fail(self, batches: Iterable[Active], error: CoreError) -> None:
        """Fail the open requests of batches that were removed before. Then call `tell_finished`."""
        for one in batches:
            _fail(one, error)
            self._finish(one)

    def _answer_each(
        self,
        active: Active,
        items: list[layout.Answer | bool | None],
        tensors: list[list[Tensor]],
    ) -> None:
        for i, item in enumerate(items):
            if i not in active.open:
                continue  # a response sender was first
            if isinstance(item, layout.Answer):
                give(active.batch, i, item, tensors[i], True)
                active.open.discard(i)  # after decoding: a malformed answer fails with the child
            elif item is True:
                active.open.discard(i)
                active.batch.reschedule(i)
            elif item is False:
                active.batch.defer(i)  # its sender answers later
            elif not self._decoupled:
                active.open.discard(i)  # it has no answer, and the pipeline reports that

    def _over(self, number: int, active: Active) -> None:
        """Handle the end of a batch's execution in the child, and forget the batch if no request is open."""
        self.worked = True
        self._finish(active)
        self._forget_if_over(number, active)

    def _finish(self, active: Active) -> None:
        if active.done is not None:
            self._finished.append(active.done)
            active.done = None

    def _forget_if_over(self, number: int, active: Active) -> None:
        if active.done is None and not active.open:
            self._active.pop(number, None)


def _fail(active: Active, error: CoreError) -> None:
    for i in sorted(active.open):
        active.batch.fail(i, error, failure=True)
    active.open.clear()
