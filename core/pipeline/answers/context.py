"""DeliveryContext: what all deliveries of one model version share, and where they count and trace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from core.batch import Batch
from core.config.signature import Signature
from core.errors import CoreError
from core.native.clock import Clock
from core.native.thread_queue import caller_on
from core.pipeline.batching.queue import QueuedRequest
from core.pipeline.endpoint import InFlightRequests
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.telemetry.statistics import Statistics

BatchDone = Callable[[Batch, "BaseException | None"], None]


class DeliveryContext:
    """Shared state of the deliveries of one model version.

    Call its methods and use `statistics`, `first_response`, `in_flight` and `put_back` on the event loop
    only. Any thread may read the other fields.

    signature        inputs and outputs of the version, with `specs` of its outputs
    reshapes         whether clients see an output in another shape than the model
    statistics       counters of the version
    first_response   histogram of the times to first responses; None unless the model is decoupled and the
                     histogram is switched on
    loop             the server's event loop; `call_on_loop` calls a function on it. Any thread
    in_flight        counter of the accepted requests
    put_back         called with a request that asks for another execution; set by the scheduler
    batch_done       called with (batch, error or None) after each execution, on the thread where it ended;
                     None if no plugin wants the call
    checks_outputs, output_hint   of core.Model
    clock            time.monotonic_ns, or the clock of a test
    """

    def __init__(
        self,
        signature: Signature,
        statistics: Statistics,
        loop: asyncio.AbstractEventLoop,
        in_flight: InFlightRequests,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        batch_done: BatchDone | None = None,
    ):
        self.signature = signature
        self.name = signature.name
        self.version = signature.version
        self.decoupled = signature.decoupled
        self.stateful = bool(signature.states)
        self.specs = tuple(signature.outputs.values())
        self.reshapes = any(spec.reshape is not None for spec in self.specs)
        self.checks_outputs = False
        self.output_hint = ""
        self.statistics = statistics
        self.first_response = statistics.first_response if signature.decoupled else None
        self.loop = loop
        self.call_on_loop = caller_on(loop)
        self.in_flight = in_flight
        self.put_back: Callable[[QueuedRequest], None] = None  # type: ignore[assignment]
        self.batch_done = batch_done
        self.clock = Clock(clock_ns)

    def count(self, queued: QueuedRequest, batch: Batch, failure: bool) -> None:
        """Count a request whose final item is there: as cancelled, failed or successful.

        failure   whether the execution has failed; an error that it gave one request counts as success
        """
        request = queued.request
        now = self.clock.now_ns()
        total = now - request.arrival_ns
        if request.cancelled:  # the client has got an error, whatever the model has returned
            self.statistics.failed("CANCELED", total)
            return
        if failure:
            self.statistics.failed("BACKEND", total)
            return
        start = batch.start_ns
        end = batch.end_ns or now  # now if the batch still runs
        compute_start = batch.compute_start_ns or start
        compute_end = batch.compute_end_ns or end
        self.statistics.succeeded(
            request.rows,
            total,
            start - request.arrival_ns,
            compute_start - start,
            compute_end - compute_start,
            end - compute_end,
        )

    def count_first(
        self, queued: QueuedRequest, item: InferenceResponse | CoreError | None
    ) -> None:
        """Count the time to the first response of a request, if `item` is that response."""
        times = self.first_response
        if times is None or not queued.counts or queued.begun:
            return
        if isinstance(item, InferenceResponse):
            queued.begun = True
            times.observe(self.clock.now_ns() - queued.request.arrival_ns)

    def trace(
        self,
        request: InferenceRequest,
        batch: Batch,
        item: InferenceResponse | CoreError | None,
        final: bool,
        instance: str,
    ) -> None:
        """Add outputs to the request's trace; with the final item, also inputs, times and the instance."""
        trace = request.trace
        if isinstance(item, InferenceResponse):
            trace.tensors("TENSOR_BACKEND_OUTPUT", item.outputs)
        if final:
            start = batch.start_ns
            end = batch.end_ns or self.clock.now_ns()
            trace.tensors("TENSOR_BACKEND_INPUT", request.inputs.values(), request.shared, start)
            trace.stamp("COMPUTE_START", start)
            trace.stamp("COMPUTE_INPUT_END", batch.compute_start_ns or start)
            trace.stamp("COMPUTE_OUTPUT_START", batch.compute_end_ns or end)
            trace.stamp("COMPUTE_END", end)
            vars(trace).setdefault("attributes", {})["core.instance"] = instance


class OutstandingBatches:
    """Counter of the batches that one instance has taken and not yet answered completely.

    Not thread-safe: call from the event loop only.

    name       of the instance
    on_empty   called once when the count becomes 0; or None
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.count = 0
        self.on_empty: Callable[[], None] | None = None

    def finished(self) -> None:
        """Count one batch less, which has run and has no open request. After the last, call `on_empty`."""
        self.count -= 1
        if not self.count and self.on_empty is not None:
            callback, self.on_empty = self.on_empty, None
            callback()
