"""Shadow: copies requests to another version, and compares the answers. The caller never waits for it.

Front ─► [Shadow] ─► Copy ─► ModelEndpoint of the version ─► Comparison ─► ShadowCounts

A copy is sent when the caller has its whole answer: it is never before the caller in a queue, and a request
that the caller gives up has no copy.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

from core.errors import CoreError
from core.governing import ModelEndpoint
from core.request import InferenceRequest, RequestedOutput
from core.response import InferenceResponse
from core_traffic.comparison import Answer
from core_traffic.copies import Copy, ShadowCounts
from core_traffic.shadowing import Shadowing

logger = logging.getLogger("core")

_LOOK_S = 0.1  # between two searches for copies that take too long
_SMALL = 16_384  # bytes of answers that are compared at once; a thread would cost more


class Shadow:
    """Copies requests to one version. Event loop only.

    model       for the log
    endpoint    of the version
    counts      its counters, which outlive the Shadow
    executor    compares large answers
    """

    def __init__(
        self,
        model: str,
        settings: Shadowing,
        endpoint: ModelEndpoint,
        counts: ShadowCounts,
        executor: Executor,
        draw: Callable[[], float] = random.random,
    ):
        self.settings = settings
        self.endpoint = endpoint
        self._model = model
        self._counts = counts
        self._executor = executor
        self._draw = draw
        self._loop = asyncio.get_running_loop()
        self._copies: set[Copy] = set()  # those that were sent
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._warned = False

    def copy_of(self, request: InferenceRequest, version: int) -> Copy | None:
        """Return the copy of a request, which waits for its answers; None if it is not copied.

        version   that answers the caller
        """
        settings, counts = self.settings, self._counts
        if version == settings.version or self._draw() >= settings.share:
            return None
        if request.shared:  # the client may change its memory as soon as it has the answer
            counts.results["skipped"] += 1
            return None
        if counts.in_flight >= settings.in_flight:
            counts.results["dropped"] += 1
            return None
        copy = request.copy_with(dict(request.inputs))
        copy.model_version = settings.version
        if request.has_parameters:
            copy.parameters = dict(request.parameters)
        if request.outputs:
            copy.outputs = tuple(RequestedOutput(o.name, o.class_count) for o in request.outputs)
        counts.in_flight += 1
        return Copy(copy, self._answered)

    def refused(self, copy: Copy) -> None:
        """Drop the copy of a request that its version has not accepted."""
        self._end(copy, "skipped")

    def close(self) -> None:
        """Cancel all copies, since the settings have changed or the version ends."""
        self._closed = True
        for copy in list(self._copies):
            self._count(copy, "skipped")
            self._cancel(copy)

    def _answered(self, copy: Copy) -> None:
        """Send a copy, since the caller has its answer."""
        if self._closed or copy.cancelled:
            self._end(copy, "skipped")
        else:
            self._loop.call_soon(self._send, copy)

    def _send(self, copy: Copy) -> None:
        if self._closed:
            self._end(copy, "skipped")
            return
        copy.start_ns = time.monotonic_ns()
        self._copies.add(copy)
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_S, self._look)
        try:
            copy.reply = self.endpoint.submit(copy.request)
        except CoreError as error:
            self._take(copy, error, True)
        else:
            copy.reply.listen(partial(self._take, copy))

    def _take(self, copy: Copy, item: InferenceResponse | CoreError | None, final: bool) -> None:
        """Take one item of the answer to a copy."""
        if not copy.counted:
            copy.theirs.take(item, final)
        if final:
            self._copies.discard(copy)
            # Not here: the same batch may have the answers of other callers.
            self._loop.call_soon(self._ended, copy)

    def _ended(self, copy: Copy) -> None:
        """Compare the answers, since that to the copy is whole."""
        if copy.counted:
            self._leave(copy)
        elif copy.theirs.failed is not None and copy.mine.failed is None:
            self._differed(
                copy, "error", {"what": "error", "shadow": copy.theirs.failed.message[:500]}
            )
            self._leave(copy)
        else:
            self._compare(copy).add_done_callback(partial(self._compared, copy))

    def _compare(self, copy: Copy) -> asyncio.Future[dict[str, Any] | None]:
        mine, theirs = copy.mine, copy.theirs
        compare = partial(
            self.settings.comparison.of_answers,
            mine.first,
            theirs.first,
            (mine.count, theirs.count),
        )
        if is_small([*mine.first, *theirs.first]):
            future: asyncio.Future[dict[str, Any] | None] = self._loop.create_future()
            try:
                future.set_result(compare())
            except Exception as error:
                future.set_exception(error)
            return future
        return self._loop.run_in_executor(self._executor, compare)

    def _compared(self, copy: Copy, future: asyncio.Future[dict[str, Any] | None]) -> None:
        if future.cancelled() or future.exception() is not None:
            text = "traffic of model '%s': two answers cannot be compared"
            logger.error(
                text, self._model, exc_info=None if future.cancelled() else future.exception()
            )
            self._end(copy, "skipped")
        elif (found := future.result()) is None:
            self._end(copy, "equal")
        else:
            self._differed(copy, "differing", found)
            self._leave(copy)

    def _look(self) -> None:
        """Cancel the copies that take too long."""
        self._timer = None
        oldest_ns = time.monotonic_ns() - int(self.settings.timeout_ms * 1e6)
        for copy in list(self._copies):
            if not copy.counted and copy.start_ns < oldest_ns:
                text = f"no answer in {self.settings.timeout_ms:g} ms"
                self._differed(copy, "error", {"what": "error", "shadow": text})
                self._cancel(copy)
        if self._copies and self._timer is None:
            self._timer = self._loop.call_later(_LOOK_S, self._look)

    def _cancel(self, copy: Copy) -> None:
        if copy.reply is not None:
            copy.reply.cancel()

    def _end(self, copy: Copy, result: str) -> None:
        self._count(copy, result)
        self._leave(copy)

    def _count(self, copy: Copy, result: str) -> None:
        if not copy.counted:
            copy.counted = True
            self._counts.results[result] += 1

    def _leave(self, copy: Copy) -> None:
        self._counts.in_flight -= 1

    def _differed(self, copy: Copy, result: str, found: dict[str, Any]) -> None:
        """Count a difference. The first one is in the log; all are in the counters."""
        copy.counted = True
        self._counts.differed(result, copy.request, found)
        if not self._warned:
            self._warned = True
            logger.warning(
                "traffic of model '%s': shadow version %d differs: %s",
                self._model, self.settings.version, described(found),
            )  # fmt: skip


def is_small(answers: Sequence[Answer]) -> bool:
    """Return whether answers are few bytes, all of them in host memory."""
    tensors = [each for answer in answers if not isinstance(answer, CoreError) for each in answer]
    return all(t.device is None for t in tensors) and sum(t.byte_size for t in tensors) <= _SMALL


def described(found: dict[str, Any]) -> str:
    """Return a difference as text."""
    output = found.get("output", "")
    index = str(found.get("index") or "")
    caller = f", not {found['caller']}" if "caller" in found else ""
    return f"{found['what']} {output}{index} is {found.get('shadow')}{caller}".replace("  ", " ")
