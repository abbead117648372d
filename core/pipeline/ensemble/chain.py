"""EnsembleChain: what Chain is for a model with instances.

admit ─► [EnsembleChain] ─► the chains of the steps' models ─► Reply.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from core.caches import Cache
from core.config import ModelConfig, Signature
from core.errors import CoreError, Kind
from core.pipeline.admit import Admission
from core.pipeline.cache import Cached
from core.pipeline.ensemble.devices import outputs_asked
from core.pipeline.ensemble.first_responses import FirstResponses
from core.pipeline.ensemble.run import Infer, Plan, Run
from core.pipeline.ensemble.steps import Step, needed_steps
from core.pipeline.intake import Door, Handler, Intake
from core.request import InferenceRequest, RequestedOutput
from core.response import Reply
from core.telemetry.statistics import Statistics


class EnsembleChain:
    """What Chain is for a model with instances: the way through an ensemble. Loop thread only.

    steps    those of the configuration, with what their models say
    infer    gives a request to the model that it names (Server.infer_step)
    content  gives a digest of what the ensemble and its steps were loaded from
    ready    whether every model of the steps can serve
    check    the same, after their instances have been asked
    ranks    of outputs whose model batches and the ensemble does not, or the other way round
    """

    def __init__(
        self,
        config: ModelConfig,
        signature: Signature,
        steps: list[Step],
        infer: Infer,
        ready: Callable[[], bool],
        check: Callable[[], Awaitable[bool]],
        loop: asyncio.AbstractEventLoop,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        cache: Cache | None = None,
        content: Callable[[], str] = str,
        ranks: dict[str, int] | None = None,
        statistics: Statistics | None = None,
    ):
        self.signature = signature
        self._content = content
        self.statistics = statistics or Statistics()
        self.steps = steps
        self._most_in_flight = config.ensemble_scheduling.max_inflight_requests
        self._infer = infer
        self._ranks = ranks
        self._clock_ns = clock_ns
        self._ready = ready
        self._check = check
        self._intake = Intake(loop)
        self._plan = self._planned([RequestedOutput(name) for name in signature.outputs])
        inner: Handler = self._run
        if signature.decoupled and self.statistics.first_response is not None:
            inner = FirstResponses(inner, self.statistics.first_response, clock_ns)
        if cache is not None and config.response_cache.enable:
            ended = self._intake.ended
            inner = Cached(inner, cache, signature, self.statistics, ended, clock_ns, content)
        self.handler = Door(self._intake, Admission(signature, clock_ns), inner)

    @property
    def pending(self) -> int:
        """Always 0: requests wait in the queues of the steps' models."""
        return 0

    @property
    def pending_by_priority(self) -> dict[int, int]:
        """Empty, for the same reason."""
        return {}

    @property
    def instances(self) -> int:
        """None: what runs are instances of the steps' models."""
        return 0

    @property
    def in_flight(self) -> int:
        """Accepted requests without their last answer."""
        return self._intake.in_flight

    @property
    def ready(self) -> bool:
        return self._ready()

    @property
    def takes_device(self) -> bool:
        """Whether a step takes arrays on devices as they are."""
        return any(step.takes_device for step in self.steps)

    async def check(self) -> bool:
        return await self._check()

    @property
    def content(self) -> str:
        """A digest of what the ensemble and the models of its steps, as they serve now, were loaded from.

        Raises CoreError if one of them does not serve.
        """
        return self._content()

    async def drain(self) -> None:
        """Refuse new requests and wait for the last answer of those that were accepted."""
        await self._intake.drain()

    async def close(self) -> None:
        """Nothing is open: an ensemble has no instances."""
        self._intake.close()

    def _run(self, request: InferenceRequest) -> Reply:
        run = Run(self._plan_for(request) if request.outputs else self._plan, request)
        run.begin()
        return run.reply

    def _plan_for(self, request: InferenceRequest) -> Plan:
        return self._planned(request.outputs)

    def _planned(self, outputs: Sequence[RequestedOutput]) -> Plan:
        wanted = [output.name for output in outputs]
        steps = needed_steps(self.steps, wanted)
        return Plan(
            self.signature,
            steps,
            wanted,
            self._infer,
            self._ended,
            self._most_in_flight,
            self._ranks,
            outputs_asked(steps, outputs),
        )

    def _ended(self, request: InferenceRequest, error: CoreError | None) -> None:
        """A request has got its last answer: count it."""
        total = self._clock_ns() - request.arrival_ns
        if request.cancelled:  # its client got an error, whatever the last step answered
            self.statistics.failed("CANCELED", total)
        elif error is None:
            self.statistics.executed(request.rows, 0, total, 0)
            self.statistics.succeeded(request.rows, total, 0, 0, total, 0)
        else:
            cancelled = error.kind is Kind.CANCELLED
            reason = "DEADLINE" if error.kind is Kind.DEADLINE_EXCEEDED else "OTHER"
            self.statistics.failed("CANCELED" if cancelled else reason, total)
        self._intake.ended()
