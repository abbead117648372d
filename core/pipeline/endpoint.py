"""ModelEndpoint: the entry to one model version. It admits requests and counts them until they end.

frontend ─► EndpointTable ─► [ModelEndpoint] ─► admit ─► the handlers of the chain
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from core.errors import unavailable
from core.pipeline.admit import Admission, request_label
from core.request import InferenceRequest
from core.response import Reply

Handler = Callable[[InferenceRequest], Reply]


class InFlightRequests:
    """Counter of the accepted requests of one model version that have no final response yet.

    Not thread-safe: call from the event loop only.

    count       requests that wait or run
    draining    whether the version refuses new requests
    """

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.count = 0
        self.draining = False
        self._loop = loop
        self._drained: asyncio.Future[None] | None = None

    def enter(self) -> None:
        """Count one more request. Call `leave` once when it has ended."""
        self.count += 1

    def leave(self) -> None:
        """Count one request less, after its final response."""
        self.count -= 1
        if not self.count and self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def close(self) -> None:
        """Refuse new requests."""
        self.draining = True

    async def drain(self) -> None:
        """Refuse new requests and wait until all accepted requests have ended."""
        self.draining = True
        if self.count:
            if self._drained is None:
                self._drained = self._loop.create_future()
            await asyncio.shield(self._drained)


class RequestHandler:
    """Base class of compiled handlers: `submit` is a C call that creates no argument tuple."""

    def submit(self, request: InferenceRequest) -> Reply:
        """Take an admitted request. Raise CoreError to refuse it."""
        raise NotImplementedError

    def __call__(self, request: InferenceRequest) -> Reply:
        return self.submit(request)


class ModelEndpoint:
    """Handler of one model version: checks each request, counts it, gives it to the inner handler.

    The inner handler must call `in_flight.leave` once for each request that it accepts.
    Not thread-safe: call from the event loop only.

    signature   inputs and outputs of the version
    """

    def __init__(self, in_flight: InFlightRequests, admission: Admission, inner: Handler):
        self.signature = admission.signature
        self._in_flight = in_flight
        self._admission = admission
        self.lead_to(inner)

    def lead_to(self, inner: Handler) -> None:
        """Give the requests from now on to another inner handler."""
        self._inner = inner
        self._compiled = inner if isinstance(inner, RequestHandler) else None

    def __call__(self, request: InferenceRequest) -> Reply:
        return self.submit(request)

    def submit(self, request: InferenceRequest) -> Reply:
        """Accept a request. Raise CoreError if it is invalid, refused by `inner`, or the version drains."""
        if self._in_flight.draining:
            raise unavailable(
                f"{request_label(request)} Server is stopping, scheduler for model has stopped "
                "accepting new inference requests"
            )
        self._admission.check(request)
        self._in_flight.enter()
        try:
            if self._compiled is not None:
                return self._compiled.submit(request)
            return self._inner(request)
        except BaseException:  # also one of a plugin's layer: the request is over
            self._in_flight.leave()
            raise
