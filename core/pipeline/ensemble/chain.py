"""EnsembleChain: the chain of an ensemble, which has steps instead of instances.

admit ─► [EnsembleChain] ─► the chains of the steps' models ─► Reply.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from core.config import ModelConfig, Signature
from core.errors import CoreError, Kind
from core.pipeline.admit import Admission
from core.pipeline.cache import Cached
from core.pipeline.endpoint import Handler, InFlightRequests, ModelEndpoint
from core.pipeline.ensemble.devices import outputs_asked
from core.pipeline.ensemble.first_responses import FirstResponses
from core.pipeline.ensemble.plan import EnsemblePlan, Infer
from core.pipeline.ensemble.run import Run
from core.pipeline.ensemble.steps import Step, needed_steps
from core.pipeline.services import ChainServices
from core.request import InferenceRequest, RequestedOutput
from core.response import Reply
from core.telemetry.statistics import Statistics


@dataclass(frozen=True)
class StepModels:
    """The models of an ensemble's steps, as the server gives access to them.

    infer     gives a request to the model that it names (Models.infer_step)
    ready     returns whether all models can serve
    check     asks the instances of all models, and returns whether all models can serve
    content   returns a digest of the files of the ensemble and its models; raises CoreError if a model does
              not serve
    """

    infer: Infer
    ready: Callable[[], bool]
    check: Callable[[], Awaitable[bool]]
    content: Callable[[], str] = str


class EnsembleChain:
    """The handlers of one ensemble version; the interface is that of Chain, except for instances.

    Not thread-safe: call from the event loop only.

    steps    the steps to run, completed with what their models say
    models   of the steps: they have the instances, and requests wait in their queues
    ranks    output → rank for clients, if only its model or only the ensemble has a batch dimension
    """

    pending = 0
    pending_by_priority: Mapping[int, int] = {}
    instances = 0
    executing: Mapping[str, int] = {}

    def __init__(
        self,
        config: ModelConfig,
        signature: Signature,
        steps: list[Step],
        models: StepModels,
        services: ChainServices,
        ranks: dict[str, int] | None = None,
        statistics: Statistics | None = None,
    ):
        self.signature = signature
        self.statistics = statistics or Statistics()
        self.steps = steps
        self._most_in_flight = config.ensemble_scheduling.max_inflight_requests
        self._models = models
        self.check = models.check
        self._ranks = ranks
        self._clock_ns = clock_ns = services.clock_ns
        self._in_flight = InFlightRequests(services.loop)
        self._plan = self._planned([RequestedOutput(name) for name in signature.outputs])
        inner: Handler = self._run
        if signature.decoupled and self.statistics.first_response is not None:
            inner = FirstResponses(inner, self.statistics.first_response, clock_ns)
        self._uncached, self._services = inner, services
        admission = Admission(signature, clock_ns)
        self.handler = ModelEndpoint(self._in_flight, admission, self._outer(config))

    def _outer(self, config: ModelConfig) -> Handler:
        if self._services.cache is None or not config.response_cache.enable:
            return self._uncached
        leave, content = self._in_flight.leave, self._models.content
        return Cached(
            self._uncached, self._services, self.signature, self.statistics, leave, content
        )

    def configure(self, old: ModelConfig, new: ModelConfig) -> None:
        """Serve by another configuration, which differs in its response_cache only."""
        self.handler.lead_to(self._outer(new))

    @property
    def in_flight(self) -> int:
        """Number of accepted requests that have not ended."""
        return self._in_flight.count

    @property
    def ready(self) -> bool:
        """Whether all models of the steps can serve."""
        return self._models.ready()

    @property
    def takes_device(self) -> bool:
        """Whether the model of a step accepts arrays in the memory of a device."""
        return any(step.takes_device for step in self.steps)

    @property
    def content(self) -> str:
        """Return a digest of the files of the ensemble and of the models that serve its steps now.

        Raise CoreError if one of them does not serve.
        """
        return self._models.content()

    async def drain(self) -> None:
        """Refuse new requests, and wait until all accepted requests have ended."""
        await self._in_flight.drain()

    async def close(self) -> None:
        """Refuse new requests. There are no instances to close."""
        self._in_flight.close()

    def _run(self, request: InferenceRequest) -> Reply:
        run = Run(self._planned(request.outputs) if request.outputs else self._plan, request)
        run.begin()
        return run.reply

    def _planned(self, outputs: Sequence[RequestedOutput]) -> EnsemblePlan:
        wanted = [output.name for output in outputs]
        steps = needed_steps(self.steps, wanted)
        return EnsemblePlan(
            self.signature,
            steps,
            wanted,
            self._models.infer,
            self._ended,
            self._most_in_flight,
            self._ranks,
            outputs_asked(steps, outputs),
        )

    def _ended(self, request: InferenceRequest, error: CoreError | None) -> None:
        """Count a request that has ended."""
        total = self._clock_ns() - request.arrival_ns
        if request.cancelled:  # the client has got an error, whatever the last step has returned
            self.statistics.failed("CANCELED", total)
        elif error is None:
            self.statistics.executed(request.rows, 0, total, 0)
            self.statistics.succeeded(request.rows, total, 0, 0, total, 0)
        else:
            cancelled = error.kind is Kind.CANCELLED
            reason = "DEADLINE" if error.kind is Kind.DEADLINE_EXCEEDED else "OTHER"
            self.statistics.failed("CANCELED" if cancelled else reason, total)
        self._in_flight.leave()
