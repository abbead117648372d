"""How long requests of an ensemble that streams wait for their first answers, where that is counted."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import CoreError
from core.native.distribution import Histogram
from core.pipeline.intake import Handler
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply


class FirstResponses:
    """A layer around a handler. Loop thread only.

    histogram   where the times are counted
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
