"""Answering: one request of a job, from its bytes to its result. What was refused is sent again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from core.errors import CoreError, Kind
from core.response import InferenceResponse
from core_jobs.job import Item, Job, Result
from core_jobs.running.allowance import JobAllowance
from core_jobs.running.reading import JobReader, failure, result_of
from frontends.shared.deadline import infer_with_deadline

if TYPE_CHECKING:
    from core.control.models import Models
    from core.request import InferenceRequest
    from core.response import Reply
    from core.server import InferenceServer
    from frontends.shared.usage_meter import UsageMeter

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
# No room in a queue, a model that loads, a model that is away.
_REFUSED = (Kind.UNAVAILABLE, Kind.EXHAUSTED)
_MOST_REFUSALS = 5  # of one request by a model that had taken it, and may have executed it


class ModelAway(Exception):
    """The model has not served for the whole patience of a job; the text says why."""


class Refused(Exception):
    """A request was refused.

    was_taken   whether by a model that had taken it; else nothing was executed
    """

    def __init__(self, error: CoreError, *, was_taken: bool = False):
        super().__init__(error.message)
        self.error = error
        self.was_taken = was_taken


class Answering:
    """Answers the requests of one job. Event loop only.

    patience_s   for which the model may take no request of the job
    on_retry     called for each request that is sent once more
    stopping     whether the server stops: a job then waits for the next start
    """

    def __init__(
        self,
        server: InferenceServer,
        reader: JobReader,
        job: Job,
        patience_s: float,
        on_retry: Callable[[], object],
        stopping: Callable[[], bool],
    ):
        self._server = server
        self._reader = reader
        self._job = job
        self._patience_s = patience_s
        self._on_retry = on_retry
        self._stopping = stopping
        self._allowance = JobAllowance(server, job, stopping)
        # By `_now_s`, since when the model has taken no request.
        self._refused_s: float | None = None

    async def answer(self, item: Item) -> Result:
        """Return the result of a request; its error is a result, too.

        Waits while the limits of the caller do not permit it, and while the model takes no request. Raises
        ModelAway at the end of the patience.
        """
        pause_s = _FIRST_PAUSE_S
        refusals = 0
        while True:
            try:
                async with self._allowance.one() as meter:
                    return await self._once(item, meter)
            except Refused as refused:
                if self._stopping():
                    await asyncio.Event().wait()  # until the job is released
                if refused.was_taken:
                    refusals += 1
                    if refusals == _MOST_REFUSALS:
                        return failure(self._job, item.index, refused.error)
                else:
                    self._check_patience(refused)
            except CoreError as error:
                return failure(self._job, item.index, error)
            self._on_retry()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _check_patience(self, refused: Refused) -> None:
        now_s = self._now_s()
        if self._refused_s is None:
            self._refused_s = now_s
        if now_s - self._refused_s >= self._patience_s:
            raise ModelAway(
                f"model '{self._job.model}' has taken no request for {self._patience_s:g} s "
                f"(--jobs-patience-secs): {refused}"
            ) from None

    def _now_s(self) -> float:
        """Return the time by a clock that stands still while the job waits long for a limit."""
        return time.monotonic() - self._allowance.excused_s

    async def _once(self, item: Item, meter: UsageMeter | None) -> Result:
        """Send a request and return its result. Raises Refused, and CoreError for other errors."""
        job, models = self._job, self._server.models
        try:
            many = models.signature(job.model, job.version).decoupled
        except CoreError as error:
            raise Refused(error) from None
        request, wanted = await self._reader.read(job, item)
        try:
            # A model whose instances are all gone takes requests, and refuses each of them.
            serves = models.is_ready(job.model, job.version)
            reply = infer_with_deadline(lambda each: _asked(models, each, meter), request)
        except CoreError as error:
            if error.kind in (*_REFUSED, Kind.NOT_FOUND):
                raise Refused(error) from None
            raise
        if serves:
            self._refused_s = None
        try:
            responses = await _all(aiter(reply)) if many else [await reply]
            self._refused_s = None
        except CoreError as error:
            if error.kind in _REFUSED and not many:
                raise Refused(error, was_taken=serves) from None
            raise
        return await result_of(job, item.index, responses, wanted, many=many)


def _asked(models: Models, request: InferenceRequest, meter: UsageMeter | None) -> Reply:
    """Hand a request to its model, and let `meter` count it."""
    if meter is None:
        return models.infer(request)
    endpoint = models.endpoint(request.model_name, request.model_version)
    return meter.ask(models.ask, endpoint, request)


async def _all(
    answers: AsyncGenerator[InferenceResponse | CoreError, None],
) -> list[InferenceResponse]:
    """Return all responses. Raises the first error among them; the request is then cancelled."""
    found = []
    async with aclosing(answers):
        async for each in answers:
            if isinstance(each, CoreError):
                raise each
            found.append(each)
    return found
