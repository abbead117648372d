"""WaitingRequests: the requests of one model that wait for its load.

OutChain ─► [WaitingRequests] ─► one load for all ─► the endpoint of the loaded version ─► Reply
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from core.errors import CoreError, DeadlineExceeded, Exhausted, cancelled, unavailable
from core.request import InferenceRequest
from core.response import Reply

logger = logging.getLogger("core")

SPAN = "MODEL_LOAD"  # in traces: the wait of a request
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0  # between two loads of a model after failures


class WaitingRequests:
    """The queue of one model. Event loop only.

    begin     starts a load of the model, unless one runs; it calls `loaded` or `failed` at its end
    submit    passes a request to the version that is loaded now; raises CoreError
    waited    called with the seconds that each request has waited
    most      requests that may wait at once
    most_s    longest time that one may wait
    clock_ns  the clock of deadlines and traces
    """

    def __init__(
        self,
        key: str,
        loop: asyncio.AbstractEventLoop,
        begin: Callable[[], None],
        submit: Callable[[InferenceRequest], Reply],
        waited: Callable[[float], None],
        most: int,
        most_s: float,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ):
        self.key = key
        self._loop = loop
        self._begin = begin
        self._submit = submit
        self._waited = waited
        self._most = most
        self._most_s = most_s
        self._clock_ns = clock_ns
        self._requests: dict[_Waiting, None] = {}  # in the order of arrival
        self._error: CoreError | None = None  # of the last load, while the pause after it lasts
        self._pause_s = 0.0
        self._again_at = 0.0

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def refusal(self) -> CoreError | None:
        """Return the error for requests soon after a failed load; None if they may wait for a load."""
        return self._error if self._loop.time() < self._again_at else None

    def take(self, request: InferenceRequest) -> Reply:
        """Let a request wait for the load, and start it. Returns the Reply of the request.

        Raises Exhausted if too many wait, DeadlineExceeded, and the error of a load that failed just now.
        """
        if (refusal := self.refusal) is not None:
            raise CoreError(refusal.kind, refusal.message)
        if len(self._requests) >= self._most:
            raise Exhausted(
                f"{len(self._requests)} requests wait for the load of model '{self.key}', the limit of "
                "--memory-waiting-requests; retry later",
                retry_after_s=1.0,
            )
        limit_s, error = self._limit(request)
        if limit_s <= 0:
            raise error
        waiting = _Waiting(request, self._loop.time(), self._clock_ns())
        self._requests[waiting] = None
        waiting.timer = self._loop.call_later(limit_s, self._end, waiting, error)
        waiting.on_cancel = lambda: self._end(waiting, cancelled())
        request.on_cancel(waiting.on_cancel)
        self._begin()
        return waiting.reply

    def loaded(self, unloaded: Sequence[str] = ()) -> None:
        """Pass every waiting request to the loaded version, in their order.

        unloaded   keys of the models that were unloaded to make room, for traces
        """
        self._error, self._pause_s, self._again_at = None, 0.0, 0.0
        room = f"; made room: {', '.join(unloaded)}" if unloaded else ""
        logger.info("loaded '%s' on request: %d waited%s", self.key, len(self._requests), room)
        for waiting in list(self._requests):
            if unloaded and waiting.request.trace is not None:
                _attributes(waiting.request.trace)["memory.unloaded"] = tuple(unloaded)
            if self._leave(waiting):
                self._pass_on(waiting)

    def failed(self, error: CoreError) -> None:
        """Fail every waiting request with the error of the load. Requests that come soon get it at once."""
        text = f"model '{self.key}' cannot be loaded for this request: {error.message.rstrip()}"
        self._error = unavailable(text)
        self._pause_s = min(max(FIRST_PAUSE_S, 2 * self._pause_s), LONGEST_PAUSE_S)
        self._again_at = self._loop.time() + self._pause_s
        for waiting in list(self._requests):
            self._end(waiting, unavailable(text))

    def _limit(self, request: InferenceRequest) -> tuple[float, CoreError]:
        """Return how long a request may wait in seconds, and its error then."""
        limits: list[tuple[float, CoreError]] = [
            (
                self._most_s,
                unavailable(
                    f"model '{self.key}' was not loaded within {self._most_s:g} s "
                    "(--memory-wait-secs); retry later"
                ),
            )
        ]
        if request.timeout_us:
            text = f"Request timeout expired while model '{self.key}' was loading"
            limits.append((request.timeout_us / 1e6, unavailable(text)))
        if request.deadline_ns:
            left_s = (request.deadline_ns - self._clock_ns()) / 1e9
            text = f"the deadline passed while model '{self.key}' was loading"
            limits.append((left_s, DeadlineExceeded(text)))
        return min(limits, key=lambda each: each[0])

    def _pass_on(self, waiting: _Waiting) -> None:
        request, reply = waiting.request, waiting.reply
        try:
            self._submit(request).listen(reply.send)
        except CoreError as error:
            reply.send(error, True)
        except Exception as error:  # one request must not keep the others from theirs
            reply.send(unavailable(f"{type(error).__name__}: {error}"), True)

    def _end(self, waiting: _Waiting, error: CoreError) -> None:
        if self._leave(waiting):
            waiting.reply.send(error, True)

    def _leave(self, waiting: _Waiting) -> bool:
        """Take a request out of the queue. Return False if it has left already."""
        if waiting not in self._requests:
            return False
        del self._requests[waiting]
        if waiting.timer is not None:
            waiting.timer.cancel()
        if waiting.on_cancel is not None:
            waiting.request.off_cancel(waiting.on_cancel)
        waited_s = self._loop.time() - waiting.since
        self._waited(waited_s)
        if (trace := waiting.request.trace) is not None:
            trace.span(SPAN, waiting.since_ns, self._clock_ns())
            _attributes(trace)["memory.waited_ms"] = round(waited_s * 1e3)
        return True


class _Waiting:
    """One request in the queue.

    since      on the clock of the loop, in seconds
    since_ns   on the clock of traces
    """

    def __init__(self, request: InferenceRequest, since: float, since_ns: int):
        self.request = request
        self.reply = Reply(request)
        self.since = since
        self.since_ns = since_ns
        self.timer: asyncio.TimerHandle | None = None
        self.on_cancel: Any = None


def _attributes(trace: Any) -> dict[str, Any]:
    """Return the attributes of the model's span in a trace."""
    found: dict[str, Any] = vars(trace).setdefault("attributes", {})
    return found
