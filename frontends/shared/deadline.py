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

# The resolution of uvloop's timers in nanoseconds. A shorter wait would not wait at all.
_TICK_NS = 1_000_000


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
    if request.deadline_ns <= clock_ns():
        raise DeadlineExceeded
    return _Limited(infer(request), request.deadline_ns, clock_ns).reply


class _Limited:
    """Passes the items of a reply on to another reply, until the first one ends or the deadline has passed.

    inner         the reply of the pipeline
    deadline_ns   the deadline, on the clock `clock_ns`
    reply         what the client gets: the items of `inner`. At the deadline the request is cancelled, and
                  the last item is DeadlineExceeded
    """

    def __init__(self, inner: Reply, deadline_ns: int, clock_ns: Callable[[], int]):
        self.reply = Reply(inner.request)
        self._inner = inner
        self._deadline_ns = deadline_ns
        self._clock_ns = clock_ns
        self._expired = False
        self._wait(0)
        inner.listen(self._arrived)

    def _wait(self, least_ns: int) -> None:
        left_ns = max(self._deadline_ns - self._clock_ns(), least_ns)
        self._timer = asyncio.get_running_loop().call_later(left_ns / 1e9, self._expire)

    def _arrived(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        if self._expired:  # the error of the cancellation, or a late response
            return
        if final:
            self._timer.cancel()
        self.reply.send(item, final)

    def _expire(self) -> None:
        if self._clock_ns() < self._deadline_ns:
            # A timer of uvloop counts whole milliseconds, and ends up to two of them early. A model would
            # find its request cancelled before the deadline, and not know why.
            self._wait(_TICK_NS)
            return
        self._expired = True
        self._inner.cancel()
        self.reply.fail(DeadlineExceeded())
