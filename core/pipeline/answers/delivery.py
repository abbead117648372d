"""BatchDelivery: takes the responses of one batch from the instance to the replies of its requests.

execute ─► split ─► [BatchDelivery] ─► Reply.  A response is built on the thread that the backend uses. The
event loop sends and counts it; one wake-up of the loop serves all responses that wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import cython

from core.batch import new_batch
from core.config.signature import Signature
from core.errors import CoreError, described, internal, raised_at
from core.pipeline.answers.context import DeliveryContext, OutstandingBatches
from core.pipeline.answers.split import (
    misfit,
    named_tensors,
    plain,
    split,
    tensors_fit,
    wanted_tensors,
    whole_tensors,
    without_states,
)
from core.pipeline.batching.queue import QueuedRequest
from core.request import InferenceRequest, Parameter
from core.response import InferenceResponse, new_response
from core.tensor import Tensor

_creating = threading.Lock()  # for `_items` of any delivery; rarely taken


@cython.freelist(32)
@cython.cclass
class BatchDelivery:
    """The responses of one batch. Create it with `new_delivery`. Invariants:

    1. Each request gets one final item: a response, an error, or None for the end of a stream.
    2. While execute runs, responses of an ordinary model wait, so that one wake-up of the loop serves them
       all. Responses of a decoupled model leave at once.
    3. The methods below "event loop" run there only.

    The responses that execute of an ordinary model returns wait in `_outcomes`, one for each request, until
    `release` sends them. All other items go through `_items`.
    """

    def _begin(
        self,
        waiting: list[QueuedRequest],
        context: DeliveryContext,
        outstanding: OutstandingBatches,
    ) -> None:
        """Set all fields. A method and not __init__, since its arguments have C types."""
        self.context = context
        self._outstanding = outstanding
        outstanding.count += 1
        self._waiting = waiting
        self._rescheduled: list[int] | None = None  # like _deferred
        self._items: deque[tuple[int, InferenceResponse | CoreError | None, bool, bool]] | None
        self._items = deque() if context.decoupled else None
        # Written by the instance's thread while it executes.
        self._deferred: set[int] | None = None
        self._deferring = not context.decoupled
        self._scheduled = False
        self._left = len(waiting)  # requests whose final item was not sent; event loop
        self._released = False  # event loop
        # For each request: None while it is open, its response until `release`, True after its final item.
        # Written by the thread that responds.
        self._outcomes: list[InferenceResponse | bool | None] = [None] * len(waiting)
        requests = []
        for entry in waiting:
            requests.append(entry.request)
        self.batch = new_batch(requests, context.signature, self)

    # any thread ----------------------------------------------------------

    def respond(
        self,
        i: int,
        outputs: Mapping[str, Any] | list[Tensor],
        parameters: dict[str, Parameter] | None,
        final: bool,
    ) -> None:
        if self._outcomes[i] is not None:
            return
        try:
            tensors = named_tensors(outputs)
            if self.context.checks_outputs and not tensors_fit(
                tensors, self._request(i), self.context.signature, self.context.specs
            ):
                self._refuse(i, tensors, final)
                return
            response = self._response(i, tensors, parameters)
        except CoreError as error:
            self._put(i, error, final, False)
        else:
            self._put(i, response, final, False)

    def respond_all(self, answers: list[list[Tensor]]) -> None:
        context = self.context
        for i in range(len(answers)):
            if self._outcomes[i] is not None:
                continue
            tensors = answers[i]
            if context.checks_outputs and not tensors_fit(
                tensors, self._request(i), context.signature, context.specs
            ):
                self._refuse(i, tensors, True)
            else:
                self._answer(i, tensors)

    def _refuse(self, i: int, tensors: list[Tensor], final: bool) -> None:
        """Send request `i` an error, because the tensors do not fit; it ends the request only if `final`."""
        error = misfit(tensors, self._request(i), self.context.signature)
        self._put(i, CoreError(error.kind, error.message + self.context.output_hint), final, final)

    def fail(self, i: int, error: CoreError, final: bool, failure: bool) -> None:
        self._put(i, error, final, failure)

    def finish(self, i: int) -> None:
        self._put(i, None, True, False)

    def defer(self, i: int) -> None:
        if self._deferred is None:
            self._deferred = set()
        self._deferred.add(i)

    def reschedule(self, i: int) -> None:
        self.defer(i)
        if self._rescheduled is None:
            self._rescheduled = []
        self._rescheduled.append(i)

    def _response(
        self, i: int, tensors: list[Tensor], parameters: dict[str, Parameter] | None
    ) -> InferenceResponse:
        context = self.context
        request = self._request(i)
        if context.stateful:
            outputs = self._without_states(i, tensors)
        elif (
            context.checks_outputs
            and not context.reshapes
            and not request.outputs
            and plain(tensors)
        ):
            outputs = tensors  # checked above: the client gets them unchanged
        else:
            outputs = wanted_tensors(tensors, request, context.signature)
        return new_response(context.name, context.version, outputs, request.id, parameters)

    def _without_states(self, i: int, tensors: list[Tensor]) -> list[Tensor]:
        """Return the tensors for the client, and keep the sequence's states. An error changes no state."""
        waiting = self._waiting[i]
        signature = self.context.signature
        outputs = wanted_tensors(without_states(tensors, signature), waiting.request, signature)
        if waiting.keep is not None and self._outcomes[i] is None:
            waiting.keep(tensors)
        return outputs

    def _request(self, i: int) -> InferenceRequest:
        waiting = self._waiting[i]
        return waiting.request

    def _put(
        self, i: int, item: InferenceResponse | CoreError | None, final: bool, failure: bool
    ) -> None:
        if self._outcomes[i] is not None:
            return
        if final:
            self._outcomes[i] = True
        if self._items is None:
            with _creating:  # two threads may be here at once
                if self._items is None:
                    self._items = deque()
        self._items.append((i, item, final, failure))
        if not self._deferring and not self._scheduled:
            self._scheduled = True
            self.context.call_on_loop(self._send_items)

    # thread of the instance --------------------------------------------

    def executed(self, outputs: Mapping[str, Any] | None, error: BaseException | None) -> None:
        """Answer the open requests with the outputs, or with the error. Called after execute.

        If both are None, deferred requests and those of a decoupled model stay open; others get an error.
        outputs, error   what execute has returned or raised; or None
        """
        batch = self.batch
        context = self.context
        if error is None and outputs is not None:
            if not batch.compute_end_ns:
                batch.compute_end_ns = context.clock.now_ns()
            try:
                if len(self._outcomes) == 1:
                    if self._outcomes[0] is None:
                        self._answer(0, whole_tensors(outputs, batch))
                else:
                    self.respond_all(split(outputs, batch))
            # Arrays of any library may raise anything; the thread must go on.
            except Exception as problem:
                error = (
                    problem if isinstance(outputs, Mapping) else _no_outputs(outputs, context.name)
                )
        if error is not None:
            self._fail_open(_as_core_error(error, context.signature))
        elif not context.decoupled:
            self._fail_unanswered()
        batch.end_ns = context.clock.now_ns()
        if context.batch_done is not None:
            context.batch_done(batch, error)

    def _answer(self, i: int, tensors: list[Tensor]) -> None:
        """Keep a response until `release`, or send it if decoupled. An error fails only request `i`."""
        try:
            response = self._response(i, tensors, None)
        except CoreError as error:
            self._put(i, error, True, False)
            return
        if not self._deferring:
            self._put(i, response, True, False)
            return
        self._outcomes[i] = response

    def _fail_unanswered(self) -> None:
        for i in range(len(self._waiting)):
            if self._outcomes[i] is None and (self._deferred is None or i not in self._deferred):
                self.fail(
                    i,
                    internal(
                        f"the instance of model '{self.context.name}' returned without an "
                        f"answer to request {i} of a batch of {len(self._waiting)}; did execute forget to "
                        "return its outputs by their names, {'y': array}?"
                    ),
                    True,
                    True,
                )

    def _fail_open(self, error: CoreError) -> None:
        for i in range(len(self._waiting)):
            self.fail(i, error, True, True)

    # event loop ------------------------------------------------------------

    def release(self) -> None:
        """Count the execution that has ended, send what waits, and put back the rescheduled requests."""
        batch = self.batch
        start = batch.start_ns
        end = batch.end_ns
        compute_start = batch.compute_start_ns or start
        compute_end = batch.compute_end_ns or end
        self.context.statistics.executed(
            batch.rows, compute_start - start, compute_end - compute_start, end - compute_end
        )
        self._deferring = False
        self._send_items()
        outcomes = self._outcomes
        for i in range(len(outcomes)):
            answer = outcomes[i]
            if type(answer) is InferenceResponse:
                outcomes[i] = True
                self._send(i, answer, True, False)
        if self._rescheduled is not None:
            for i in self._rescheduled:
                if self._outcomes[i] is None:
                    self._outcomes[i] = True  # it has left this batch
                    self._left -= 1
                    self.context.put_back(self._waiting[i])
        self._released = True
        self._release_batch()

    def _send_items(self) -> None:
        self._scheduled = False
        items = self._items
        if items is not None:
            while items:
                i, item, final, failure = items.popleft()
                if self.context.first_response is not None:
                    self.context.count_first(self._waiting[i], item)
                self._send(i, item, final, failure)
        self._release_batch()

    def _send(
        self, i: int, item: InferenceResponse | CoreError | None, final: bool, failure: bool
    ) -> None:
        """Send one item. First count its request if it is final, and trace it, unless it fills the batch."""
        waiting = self._waiting[i]
        counts = waiting.counts
        if counts:
            if final:
                self.context.count(waiting, self.batch, failure)
            if waiting.request.trace is not None:
                name = self._outstanding.name
                self.context.trace(waiting.request, self.batch, item, final, name)
        waiting.reply.send(item, final)
        if final:
            self._left -= 1
            if counts:
                self.context.in_flight.leave()
                if waiting.ended is not None:
                    waiting.ended()

    def _release_batch(self) -> None:
        """If released and without open requests, drop the batch (a reference cycle), and count its end."""
        if self._released and not self._left:
            self._left = -1
            self.batch = None  # type: ignore[assignment]
            self._outstanding.finished()


def new_delivery(
    waiting: list[QueuedRequest], context: DeliveryContext, outstanding: OutstandingBatches
) -> BatchDelivery:
    """Return the delivery of one batch, and count the batch in `outstanding`."""
    delivery: BatchDelivery = BatchDelivery.__new__(BatchDelivery)
    delivery._begin(waiting, context, outstanding)
    return delivery


def _no_outputs(found: Any, model: str) -> CoreError:
    return internal(
        f"execute of model '{model}' returned a {type(found).__name__}, it must return outputs by their "
        "names ({'y': array}), or None if it has answered with batch.respond"
    )


def _as_core_error(error: BaseException, signature: Signature) -> CoreError:
    if isinstance(error, CoreError):
        return error
    return internal(f"model '{signature.name}' failed{raised_at(error)}: {described(error)}")
