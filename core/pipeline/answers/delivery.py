"""The answers of one batch on their way from the instance to the replies.

execute ─► split ─► [Delivery] ─► Reply.  Answers are made on whatever thread the backend gives them;
they are handed over, and counted, on the loop thread, with one wake-up for all that are there.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import cython

from core.batch import Batch, made_batch
from core.config.signature import Signature
from core.errors import CoreError, Kind, internal
from core.native.clock import Clock
from core.native.distribution import Histogram
from core.pipeline.answers.split import (
    check_tensors,
    named_tensors,
    split,
    wanted_tensors,
    whole_tensors,
    without_states,
)
from core.pipeline.batching.queue import Waiting
from core.pipeline.intake import Intake
from core.request import InferenceRequest, Parameter
from core.response import InferenceResponse, made_response
from core.telemetry.statistics import Statistics
from core.tensor import Tensor

_making = threading.Lock()  # of the queue of a delivery: rarely taken


class Terms:
    """What all deliveries of one model version share. Loop thread, but for what says otherwise.

    signature   of the version; any thread
    statistics  of the version
    first_response  counts the times to first answers; None where nobody asks, or the last answer is the first
    loop        the server's; any thread
    intake      told when a request has got its last answer
    put_back    called with a request that asks for another execution
    batch_done  called with a batch and its error after each execution, where that ran; None for nobody
    checks_outputs, output_hint   of the model (core.Model)
    clock       of time.monotonic_ns, or of a test; any thread
    """

    def __init__(
        self,
        signature: Signature,
        statistics: Statistics,
        loop: asyncio.AbstractEventLoop,
        intake: Intake,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ):
        self.signature = signature
        self.name = signature.name
        self.version = signature.version
        self.decoupled = signature.decoupled
        self.stateful = bool(signature.states)
        self.checks_outputs = False
        self.output_hint = ""
        self.statistics = statistics
        self.first_response = statistics.first_response if signature.decoupled else None
        self.loop = loop
        self.intake = intake
        self.put_back: Callable[[Waiting], None] = _nowhere
        self.batch_done: Callable[[Batch, BaseException | None], None] | None = None
        self.clock = Clock(clock_ns)


def _nowhere(waiting: Waiting) -> None:
    """In the place of `put_back` until there is a scheduler."""
    raise RuntimeError("there is no scheduler to take the request back")


class Held:
    """The batches that one instance has taken and not yet answered. Loop thread.

    count    how many there are
    on_none  called once when there is none any more; None for nobody who waits for that
    """

    def __init__(self) -> None:
        self.count = 0
        self.on_none: Callable[[], None] | None = None

    def answered(self) -> None:
        """A batch is over: it has run, and all its requests have their last answers."""
        self.count -= 1
        if not self.count and self.on_none is not None:
            told, self.on_none = self.on_none, None
            told()


@cython.freelist(32)
@cython.cclass
class BatchDelivery:
    """Invariants:

    1. Each request gets one final item: an answer, an error, or the end of its answers.
    2. While execute runs, answers of an ordinary model wait, so that one wake-up carries them all;
       those of a decoupled model leave at once.
    3. Everything below "loop thread" is only touched there.

    The answers that execute returns take a way of their own: they wait in `_outcomes`, one for each
    request, until `release` hands them over. All others go through `_items`.
    """

    def __init__(self, waiting: list[Waiting], terms: Terms, held: Held):
        self._begin(waiting, terms, held)

    def _begin(self, waiting: list[Waiting], terms: Terms, held: Held) -> None:
        """What __init__ does; arguments of compiled methods have types."""
        self.terms = terms
        self._held = held
        held.count += 1
        self._waiting = waiting
        self._rescheduled: list[int] | None = None  # like _deferred
        self._items: deque[tuple[int, InferenceResponse | CoreError | None, bool, bool]] | None
        self._items = deque() if terms.decoupled else None
        # Written by the instance's thread while it executes.
        self._deferred: set[int] | None = None
        self._holding = not terms.decoupled
        self._scheduled = False
        self._left = len(waiting)  # requests whose final item was not handed over; loop thread
        self._released = False  # loop thread
        # Of each request: None while it is open, its answer until `release`, then True, as after any
        # other final item. Written by the answering thread.
        self._outcomes: list[InferenceResponse | bool | None] = [None] * len(waiting)
        requests = []
        for entry in waiting:
            requests.append(entry.request)
        self.batch = made_batch(requests, terms.signature, self)

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
            if self.terms.checks_outputs and not self._checked(i, tensors, final):
                return
            response = self._response(i, tensors, parameters)
        except CoreError as error:
            self._put(i, error, final, False)
        else:
            self._put(i, response, final, False)

    def respond_all(self, answers: list[list[Tensor]]) -> None:
        checks = self.terms.checks_outputs
        for i in range(len(answers)):
            if self._outcomes[i] is None and (not checks or self._checked(i, answers[i], True)):
                self._answer(i, answers[i])

    def _checked(self, i: int, tensors: list[Tensor], final: bool) -> bool:
        """Whether tensors are what the model's configuration says; if not, request `i` has its error."""
        terms = self.terms
        try:
            check_tensors(tensors, self._request(i), terms.signature)
        except CoreError as error:
            hinted = CoreError(error.kind, error.message + terms.output_hint)
            self._put(i, hinted, final, final)
            return False
        return True

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
        terms = self.terms
        request = self._request(i)
        if terms.stateful:
            outputs = self._stateless(i, tensors)
        else:
            outputs = wanted_tensors(tensors, request, terms.signature)
        return made_response(terms.name, terms.version, outputs, request.id, parameters)

    def _stateless(self, i: int, tensors: list[Tensor]) -> list[Tensor]:
        """What the client gets, while the sequence keeps its states: all or nothing of both."""
        waiting = self._waiting[i]
        signature = self.terms.signature
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
            with _making:  # two threads may be the first
                if self._items is None:
                    self._items = deque()
        self._items.append((i, item, final, failure))
        if not self._holding and not self._scheduled:
            self._scheduled = True
            self.terms.loop.call_soon_threadsafe(self._hand_over)

    # the instance's thread -------------------------------------------------

    def executed(self, outputs: Mapping[str, Any] | None, error: BaseException | None) -> None:
        """execute has returned or raised: answer what is still open, unless it was deferred."""
        batch = self.batch
        terms = self.terms
        if error is None and outputs is not None:
            if not batch.compute_end_ns:
                batch.compute_end_ns = terms.clock.now_ns()
            try:
                if len(self._outcomes) == 1:
                    if self._outcomes[0] is None:
                        self._answer(0, whole_tensors(outputs, batch))
                else:
                    self.respond_all(split(outputs, batch))
            # Arrays may raise whatever they like, and the thread must live.
            except Exception as problem:
                error = (
                    problem if isinstance(outputs, Mapping) else _no_outputs(outputs, terms.name)
                )
        if error is not None:
            self._fail_open(_as_core_error(error, terms.signature))
        elif not terms.decoupled:
            self._fail_forgotten()
        batch.end_ns = terms.clock.now_ns()
        if terms.batch_done is not None:
            terms.batch_done(batch, error)

    def _answer(self, i: int, tensors: list[Tensor]) -> None:
        """The rows of one request; an error that is only this request's stays with it."""
        try:
            response = self._response(i, tensors, None)
        except CoreError as error:
            self._put(i, error, True, False)
            return
        if not self._holding:
            self._put(i, response, True, False)
            return
        self._outcomes[i] = response

    def _fail_forgotten(self) -> None:
        for i in range(len(self._waiting)):
            if self._outcomes[i] is None and (self._deferred is None or i not in self._deferred):
                self.fail(
                    i,
                    internal(
                        f"the instance of model '{self.terms.name}' returned without an "
                        f"answer to request {i} of a batch of {len(self._waiting)}"
                    ),
                    True,
                    True,
                )

    def _fail_open(self, error: CoreError) -> None:
        for i in range(len(self._waiting)):
            self.fail(i, error, True, True)

    # loop thread -----------------------------------------------------------

    def release(self) -> None:
        """The execution is over: count it and hand over what waits."""
        batch = self.batch
        start = batch.start_ns
        end = batch.end_ns
        compute_start = batch.compute_start_ns or start
        compute_end = batch.compute_end_ns or end
        self.terms.statistics.executed(
            batch.rows, compute_start - start, compute_end - compute_start, end - compute_end
        )
        self._holding = False
        self._hand_over()
        outcomes = self._outcomes
        for i in range(len(outcomes)):
            answer = outcomes[i]
            if type(answer) is InferenceResponse:
                outcomes[i] = True
                self._give(i, answer, True, False)
        if self._rescheduled is not None:
            for i in self._rescheduled:
                if self._outcomes[i] is None:
                    self._outcomes[i] = True  # not in this batch any more
                    self._left -= 1
                    self.terms.put_back(self._waiting[i])
        self._released = True
        self._let_go()

    def _hand_over(self) -> None:
        self._scheduled = False
        items = self._items
        if items is not None:
            while items:
                i, item, final, failure = items.popleft()
                if self.terms.first_response is not None:
                    self._count_first(i, item, self.terms.first_response)
                self._give(i, item, final, failure)
        self._let_go()

    def _give(
        self, i: int, item: InferenceResponse | CoreError | None, final: bool, failure: bool
    ) -> None:
        """Count and trace one item, and send it."""
        waiting = self._waiting[i]
        counts = waiting.counts
        if counts:
            if final:
                self._count(waiting, failure)
            if waiting.request.trace is not None:
                self._trace(waiting.request, item, final)
        waiting.reply.send(item, final)
        if final:
            self._left -= 1
            if counts:
                self.terms.intake.ended()
                if waiting.ended is not None:
                    waiting.ended()

    def _let_go(self) -> None:
        """When all is over, part from the batch: they hold each other, and the batch its inputs."""
        if self._released and not self._left:
            self._left = -1
            self.batch = None  # type: ignore[assignment]
            self._held.answered()

    def _count(self, waiting: Waiting, failure: bool) -> None:
        request = waiting.request
        terms = self.terms
        batch = self.batch
        now = terms.clock.now_ns()
        total = now - request.arrival_ns
        if request.cancelled:  # its client got an error, whatever the model answered
            terms.statistics.failed("CANCELED", total)
            return
        if failure:
            terms.statistics.failed("BACKEND", total)
            return
        start = batch.start_ns
        end = batch.end_ns or now  # now where it still runs
        compute_start = batch.compute_start_ns or start
        compute_end = batch.compute_end_ns or end
        terms.statistics.succeeded(
            request.rows,
            total,
            start - request.arrival_ns,
            compute_start - start,
            compute_end - compute_start,
            end - compute_end,
        )

    def _count_first(
        self, i: int, item: InferenceResponse | CoreError | None, times: Histogram
    ) -> None:
        """Count how long a request has waited for its first answer, if this is it."""
        waiting = self._waiting[i]
        if waiting.counts and not waiting.begun and isinstance(item, InferenceResponse):
            waiting.begun = True
            waited_ns = self.terms.clock.now_ns() - waiting.request.arrival_ns
            times.observe(waited_ns)

    def _trace(
        self, request: InferenceRequest, item: InferenceResponse | CoreError | None, final: bool
    ) -> None:
        """Add to the trace of a request what its execution knows."""
        trace = request.trace
        if isinstance(item, InferenceResponse):
            trace.tensors("TENSOR_BACKEND_OUTPUT", item.outputs)
        if final:
            batch = self.batch
            start = batch.start_ns
            end = batch.end_ns or self.terms.clock.now_ns()
            trace.tensors("TENSOR_BACKEND_INPUT", request.inputs.values(), request.shared, start)
            trace.stamp("COMPUTE_START", start)
            trace.stamp("COMPUTE_INPUT_END", batch.compute_start_ns or start)
            trace.stamp("COMPUTE_OUTPUT_START", batch.compute_end_ns or end)
            trace.stamp("COMPUTE_END", end)


def made_delivery(waiting: list[Waiting], terms: Terms, held: Held) -> BatchDelivery:
    """BatchDelivery(…) for who makes one for every execution."""
    delivery: BatchDelivery = BatchDelivery.__new__(BatchDelivery)
    delivery._begin(waiting, terms, held)
    return delivery


def _no_outputs(found: Any, model: str) -> CoreError:
    return internal(
        f"execute of model '{model}' returned a {type(found).__name__}, it must return outputs by their "
        "names ({'y': array}), or None if it has answered with batch.respond"
    )


def _as_core_error(error: BaseException, signature: Signature) -> CoreError:
    if isinstance(error, CoreError):
        return error
    return CoreError(
        Kind.INTERNAL, f"model '{signature.name}' failed: {type(error).__name__}: {error}"
    )
