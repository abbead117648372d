"""ShadowCounts: what the copies to one version have shown. Copy: one copied request and both of its answers.

Shadow ─► [Copy] ─► Comparison ─► [ShadowCounts]
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from core.errors import CoreError
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core_traffic.comparison import Answer

SHADOW_RESULTS = ("equal", "differing", "error", "dropped", "skipped")
MOST_DIFFERENCES = 20  # that are kept
MOST_RESPONSES = 1000  # of a stream, that are compared


class ShadowCounts:
    """Counters of the copies that one version has got. Event loop only.

    results       result → number of requests: the answers were equal or differed; `error`: only the copy
                  failed; `dropped`: there were too many copies; `skipped`: there was nothing to compare
    in_flight     requests that are copied now, from their arrival to the end of the comparison
    differences   the last ones, as JSON
    largest       largest difference of two numbers so far
    """

    def __init__(self) -> None:
        self.results = dict.fromkeys(SHADOW_RESULTS, 0)
        self.in_flight = 0
        self.differences: deque[dict[str, Any]] = deque(maxlen=MOST_DIFFERENCES)
        self.largest = 0.0

    def differed(self, result: str, request: InferenceRequest, found: dict[str, Any]) -> None:
        """Count a request with a difference, and keep the difference."""
        self.results[result] += 1
        self.largest = max(self.largest, found.get("difference") or 0.0)
        id = {"id": request.id[:100]} if request.id else {}
        self.differences.append({"time": time.time(), **id, **found})

    def as_json(self) -> dict[str, Any]:
        return {
            **self.results,
            "in_flight": self.in_flight,
            "largest_difference": self.largest,
            "differences": list(self.differences),
        }


class Answers:
    """The responses to one request, as far as they are compared.

    first    the first of them
    count    all of them
    failed   the error that has ended them; None for none
    """

    def __init__(self) -> None:
        self.first: list[Answer] = []
        self.count = 0
        self.failed: CoreError | None = None

    def take(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        """Keep one item of a Reply."""
        if item is None:
            return
        self.count += 1
        if isinstance(item, CoreError) and final:
            self.failed = item
        if len(self.first) < MOST_RESPONSES:
            if isinstance(item, InferenceResponse):
                # Tensors of their own: a thread compares them while a frontend may still read the caller's.
                self.first.append([each.renamed(each.name) for each in item.outputs])
            else:
                self.first.append(item)


class Copy:
    """A copy of one request. Event loop only.

    request    for the version that gets the copy
    mine       answers of the version that the caller got
    theirs     answers to the copy
    start_ns   when the copy was sent; 0 until then
    reply      of the copy; None until it is sent
    cancelled  whether the caller went away before its last response
    counted    whether its result is counted already; later items change nothing
    """

    def __init__(self, request: InferenceRequest, answered: Callable[[Copy], None]):
        self.request = request
        self.mine, self.theirs = Answers(), Answers()
        self.start_ns = 0
        self.reply: Reply | None = None
        self.counted = False
        self.cancelled = False
        self._answered = answered

    def take(
        self, item: InferenceResponse | CoreError | None, final: bool, cancelled: bool
    ) -> None:
        """Take one item that the caller has got.

        cancelled   whether the caller has gone away
        """
        self.mine.take(item, final)
        if final:
            self.cancelled = cancelled
            self._answered(self)
