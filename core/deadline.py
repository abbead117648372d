"""Deadline: when nobody waits for an answer any more, the request ends.

frontend ─► [ask_in_time] ─► Server.infer ─► Reply.  For frontends whose transport does not end requests
by itself, as gRPC does. It covers the whole way: the queue, the execution, every answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from core.errors import CoreError, DeadlineExceeded
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply


def ask_in_time(
    infer: Callable[[InferenceRequest], Reply],
    request: InferenceRequest,
    clock_ns: Callable[[], int] = time.monotonic_ns,
) -> Reply:
    """infer(request), whose reply ends with DeadlineExceeded when `deadline_ns` has passed. Loop thread.

    The request is cancelled then: it leaves the queue at once, or the running model is told. Nothing is
    asked, and DeadlineExceeded raised, if the time has passed already. No deadline, no cost.
    """
    if not request.deadline_ns:
        return infer(request)
    left_ns = request.deadline_ns - clock_ns()
    if left_ns <= 0:
        raise DeadlineExceeded
    return _Limited(infer(request), left_ns / 1e9).reply


class _Limited:
    """Between the pipeline's reply and the client's, until the end of either.

    Invariant: `reply` gets one final item: that of the pipeline, or the error when the time has passed.
    """

    def __init__(self, inner: Reply, left_s: float):
        self.reply = Reply(inner.request)
        self._inner = inner
        self._expired = False
        self._timer = asyncio.get_running_loop().call_later(left_s, self._expire)
        inner.listen(self._arrived)

    def _arrived(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        if self._expired:  # the word of the queue that it has let the request go, or a late answer
            return
        if final:
            self._timer.cancel()
        self.reply.send(item, final)

    def _expire(self) -> None:
        self._expired = True
        self._inner.cancel()
        self.reply.fail(DeadlineExceeded())
