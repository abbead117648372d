"""infer_with_deadline: end a request when its deadline has passed.

frontend ─► [infer_with_deadline] ─► Server.infer ─► Reply.  For frontends whose transport does not enforce
deadlines (gRPC does). The deadline covers the queue, the execution and all responses.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from core.errors import CoreError, DeadlineExceeded
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply


def infer_with_deadline(
    infer: Callable[[InferenceRequest], Reply],
    request: InferenceRequest,
    clock_ns: Callable[[], int] = time.monotonic_ns,
) -> Reply:
    """Call infer(request), and return a reply that fails when request.deadline_ns has passed.

    The reply then ends with DeadlineExceeded, and the request is cancelled: it leaves its queue, or the
    running model is notified. A deadline_ns of 0 is no deadline. If the deadline has passed already, `infer`
    is not called, and DeadlineExceeded is raised. Not thread-safe: call from the event loop only.
    """
    if not request.deadline_ns:
        return infer(request)
    left_ns = request.deadline_ns - clock_ns()
    if left_ns <= 0:
        raise DeadlineExceeded
    return _Limited(infer(request), left_ns / 1e9).reply


class _Limited:
    """Passes the items of a reply on to another reply, until the first one ends or a time has passed.

    inner    the reply of the pipeline
    left_s   seconds until the deadline
    reply    what the client gets: the items of `inner`. At the deadline the request is cancelled, and
             the last item is DeadlineExceeded
    """

    def __init__(self, inner: Reply, left_s: float):
        self.reply = Reply(inner.request)
        self._inner = inner
        self._expired = False
        self._timer = asyncio.get_running_loop().call_later(left_s, self._expire)
        inner.listen(self._arrived)

    def _arrived(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        if self._expired:  # the error of the cancellation, or a late response
            return
        if final:
            self._timer.cancel()
        self.reply.send(item, final)

    def _expire(self) -> None:
        self._expired = True
        self._inner.cancel()
        self.reply.fail(DeadlineExceeded())
