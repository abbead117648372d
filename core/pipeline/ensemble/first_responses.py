"""FirstResponses: measures the time to the first response of a decoupled ensemble."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import CoreError
from core.native.distribution import Histogram
from core.pipeline.endpoint import Handler
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply


class FirstResponses:
    """Handler around another one that observes times to first responses.

    Not thread-safe: call from the event loop only.

    histogram   of the times
    """

    def __init__(self, inner: Handler, histogram: Histogram, clock_ns: Callable[[], int]):
        self._inner = inner
        self._histogram = histogram
        self._clock_ns = clock_ns

    def __call__(self, request: InferenceRequest) -> Reply:
        inner, outer = self._inner(request), Reply(request)
        begun = False

        def arrived(item: InferenceResponse | CoreError | None, final: bool) -> None:
            nonlocal begun
            if not begun and isinstance(item, InferenceResponse):
                begun = True
                self._histogram.observe(self._clock_ns() - request.arrival_ns)
            outer.send(item, final)

        inner.listen(arrived)
        return outer
