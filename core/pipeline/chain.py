"""Chain: everything between a frontend and the instances of one model version.

Composed once, when the version loads; see `Chain._handlers`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core import plugins
from core.backend import BatchRule, Model, ModelInstance
from core.batch import Batch
from core.config import ModelConfig, Signature
from core.errors import CoreError
from core.pipeline.admit import Admission
from core.pipeline.answers.context import BatchDone, DeliveryContext
from core.pipeline.batching.batcher import Batcher, GroupingBatcher, SingleBatcher
from core.pipeline.batching.group import group_key
from core.pipeline.batching.order import PreserveOrder
from core.pipeline.batching.queue import QueuedRequest, RequestQueue
from core.pipeline.batching.rule import rules_of
from core.pipeline.batching.settings import batch_limits, queue_settings
from core.pipeline.cache import Cached
from core.pipeline.endpoint import Handler, InFlightRequests, ModelEndpoint
from core.pipeline.instances.change import Change
from core.pipeline.instances.pool import Pool
from core.pipeline.instances.runner import InstanceRunner
from core.pipeline.instances.specs import instance_specs, match_specs, with_demands
from core.pipeline.layers import Layer, Layered, layers_of
from core.pipeline.sequence import SequenceScheduler
from core.pipeline.services import ChainServices
from core.pipeline.timing import BatchTiming
from core.pipeline.warmup import warmup_batches
from core.request import InferenceRequest
from core.response import Reply
from core.system.host_policy import HostPolicies
from core.telemetry.statistics import Statistics

logger = logging.getLogger("core")


@dataclass(frozen=True)
class ModelHooks:
    """Code of the model and of plugins that a chain calls.

    layers       around the handler, the outermost first
    batch_done   called after each execution; or None
    rules        function that returns the rule for the next batch; None if nothing has one
    """

    layers: Sequence[Layer] = ()
    batch_done: BatchDone | None = None
    rules: Callable[[], BatchRule] | None = None


NO_HOOKS = ModelHooks()


class Chain:
    """The handlers and the instances of one model version.

    Not thread-safe: call from the event loop only.

    handler      takes a request and returns its Reply; raises CoreError to refuse it
    handlers     what a request passes after admission, in this order; the last is the scheduler
    statistics   counters of the version
    content      digest of the files that the version was loaded from
    """

    def __init__(
        self,
        config: ModelConfig,
        signature: Signature,
        services: ChainServices,
        hooks: ModelHooks = NO_HOOKS,
        content: str = "",
        statistics: Statistics | None = None,
    ):
        self.signature = signature
        self.statistics = statistics or Statistics()
        self.content = content
        self._services = services
        self._hooks = hooks
        self._in_flight = InFlightRequests(services.loop)
        self._context = DeliveryContext(
            signature,
            self.statistics,
            services.loop,
            self._in_flight,
            services.clock_ns,
            hooks.batch_done,
        )
        self._pool = Pool(self._context, services.limiter)
        self._scheduler = self._new_scheduler(config)
        self._made: dict[Callable[[Handler], Any], Any] = {}
        self.handlers = self._handlers(config)
        admission = Admission(signature, services.clock_ns)
        self.handler = ModelEndpoint(self._in_flight, admission, self.handlers[0])

    def _handlers(self, config: ModelConfig) -> list[Handler]:
        """Return the handlers behind admission, the outermost first: each wraps the next one.

        A second call, with another configuration, keeps those that exist: they have requests.
        """
        cached = self._services.cache is not None and config.response_cache.enable
        wrappers: list[tuple[bool, Callable[[Handler], Any]]] = [
            (bool(self._hooks.layers), self._with_layers),
            # Around the cache: an answer of the cache waits for those of earlier requests, as in Triton.
            (config.dynamic_batching.preserve_ordering, PreserveOrder),
            (cached, self._with_cache),
        ]
        handlers: list[Handler] = [self._scheduler]
        for enabled, wrap in reversed(wrappers):
            if enabled:
                handler = self._made[wrap] = self._made.get(wrap) or wrap(handlers[0])
                handler.inner = handlers[0]
                handlers.insert(0, handler)
        return handlers

    def _with_layers(self, inner: Handler) -> Handler:
        return Layered(self._hooks.layers, inner, self._in_flight)

    def _with_cache(self, inner: Handler) -> Handler:
        leave, content = self._in_flight.leave, lambda: self.content
        return Cached(inner, self._services, self.signature, self.statistics, leave, content)

    def _new_scheduler(self, config: ModelConfig) -> Batcher | SequenceScheduler:
        services = self._services
        key = group_key(self.signature) if self.signature.max_batch_size else None
        if config.HasField("sequence_batching"):
            return SequenceScheduler(
                config=config,
                signature=self.signature,
                statistics=self.statistics,
                loop=services.loop,
                pool=self._pool,
                on_final=self._in_flight.leave,
                key=key,
                clock_ns=services.clock_ns,
            )
        limits = batch_limits(config)
        return (SingleBatcher if limits.alone else GroupingBatcher)(
            queue=RequestQueue(*queue_settings(config)),
            limits=limits,
            statistics=self.statistics,
            loop=services.loop,
            pool=self._pool,
            on_final=self._in_flight.leave,
            key=key,
            rules=self._hooks.rules,
            clock_ns=services.clock_ns,
            early=services.early,
        )

    @property
    def pending(self) -> int:
        """Number of requests that wait for an instance."""
        return self._scheduler.pending

    @property
    def pending_by_priority(self) -> dict[int, int]:
        """Priority level → number of requests that wait for an instance; empty without priorities."""
        return self._scheduler.pending_by_priority()

    @property
    def instances(self) -> int:
        """Number of instances in service, broken ones included."""
        return len(self._pool.runners)

    @property
    def opened(self) -> list[ModelInstance]:
        """The instances in service, broken ones included, and the passive ones."""
        return [runner.instance for runner in self._pool.runners + self._pool.passive]

    @property
    def executing(self) -> dict[str, int]:
        """Name of each instance in service → number of its batches that have not ended."""
        return {each.instance.name: each.outstanding.count for each in self._pool.runners}

    @property
    def in_flight(self) -> int:
        """Number of accepted requests that have not ended, waiting or running."""
        return self._in_flight.count

    @property
    def ready(self) -> bool:
        """Whether an instance can serve."""
        return self._pool.ready

    @property
    def has_idle(self) -> bool:
        """Whether an instance is idle: it may execute a request at once."""
        return self._pool.has_idle

    @property
    def takes_device(self) -> bool:
        """Whether an instance accepts arrays in the memory of a device."""
        return self._pool.takes_device

    async def check(self) -> bool:
        """Ask all instances, and return whether one can serve."""
        return await self._pool.check()

    async def prepare(self, model: Model) -> Change:
        """Open the instances that the model's configuration asks for and that do not exist yet.

        Each new instance that is not passive runs the warmup samples. Nothing else changes before the commit.
        Raise what `Pool.open` or `warmup_batches` raises; then the new instances are closed.
        """
        self._context.checks_outputs = model.checks_outputs
        self._context.output_hint = model.output_hint
        batches: list[tuple[str, list[InferenceRequest]]] = []
        if model.config.model_warmup:
            needed = (model.config, self.signature, model.directory)
            batches = await self._services.loop.run_in_executor(None, warmup_batches, *needed)
        wanted = instance_specs(model.config, self._services.policies or HostPolicies({}))
        serving = self._serving()
        indices, missing = match_specs([runner.spec for runner in serving], wanted)
        kept = [serving[index] for index in indices]
        opened = await self._pool.open(model, missing)
        try:
            for runner in opened:
                if not runner.spec.passive:
                    await self._warm_up(runner, batches)
        except BaseException:
            await self._pool.discard(opened)
            raise
        all_open = self._pool.runners + self._pool.passive
        leaving = [each for each in all_open if each not in kept and not each.leaves]
        return Change(self._pool, self._scheduler, opened, kept, leaving)

    def configure(self, old: ModelConfig, new: ModelConfig) -> None:
        """Serve by another configuration. Requests that wait follow it at once; running batches go on.

        old   the configuration until now. The new one may differ in response_cache, dynamic_batching, delays,
              sizes and idle time of sequence_batching (no batching comes or goes), and rate_limiter of groups
        Raises CoreError(INVALID) for resources that the rate limiter refuses; then nothing has changed.
        """
        policies, runners = self._services.policies or HostPolicies({}), self._serving()
        asked = (instance_specs(config, policies) for config in (old, new))
        demands = with_demands([each.spec for each in runners], *asked)
        specs = dict(zip(runners, demands, strict=True))
        if self._services.limiter is not None:
            self._services.limiter.change({each: spec.demand for each, spec in specs.items()})
        for runner, spec in specs.items():
            runner.spec = spec
        self.handlers = self._handlers(new)
        self.handler.lead_to(self.handlers[0])
        if isinstance(self._scheduler, SequenceScheduler):
            self._scheduler.configure(new)
        else:
            self._scheduler.configure(batch_limits(new), queue_settings(new))
        self._scheduler.pump()

    def _serving(self) -> list[InstanceRunner]:
        """Return the runners that are neither broken nor marked to leave, passive ones included."""
        runners = self._pool.runners + self._pool.passive
        return [each for each in runners if each.broken is None and not each.leaves]

    async def _warm_up(
        self, runner: InstanceRunner, batches: list[tuple[str, list[InferenceRequest]]]
    ) -> None:
        """Execute samples on one instance until it breaks. One that fails is only logged, as in Triton."""
        for name, requests in batches:
            if runner.broken is not None:
                return
            batch = [QueuedRequest(request, Reply(request)) for request in requests]
            for waiting in batch:
                self._in_flight.enter()
                waiting.request.arrival_ns = self._services.clock_ns()
            await self._pool.try_out(batch, runner)
            for waiting in batch:
                async for answer in waiting.reply:
                    if isinstance(answer, CoreError):
                        text = "warmup sample '%s' of instance '%s' failed: %s"
                        logger.warning(text, name, runner.instance.name, answer.message)

    async def drain(self) -> None:
        """Refuse new requests, end sequences that wait for requests, and wait until accepted requests end."""
        self._in_flight.close()
        self._scheduler.end_waiting_sequences()
        await self._in_flight.drain()

    def end_waiting_sequences(self) -> None:
        """End sequences that wait for requests, since no caller can send any. Accepted requests still run."""
        self._scheduler.end_waiting_sequences()

    async def close(self) -> None:
        """Refuse new requests and close the instances. A second call does nothing."""
        self._in_flight.close()
        self._scheduler.close()
        await self._pool.close()


async def open_chain(
    model: Model,
    signature: Signature,
    services: ChainServices,
    *,
    content: str = "",
    statistics: Statistics | None = None,
) -> Chain:
    """Return the chain of a loaded model, with its instances open.

    content      digest of the version's files: versions with other files share no cache entries
    statistics   counters to use; None for new ones
    Raise what `hooks_of` raises, before any instance opens, or what `Chain.prepare` raises.
    """
    chain = Chain(model.config, signature, services, hooks_of(model), content, statistics)
    (await chain.prepare(model)).commit()
    return chain


def hooks_of(model: Model) -> ModelHooks:
    """Return the hooks for a model. Raise what `layers_of` and `rules_of` raise."""
    return ModelHooks(layers_of(model), _batch_done(model), rules_of(model))


def _batch_done(model: Model) -> BatchDone | None:
    """Return a function that calls core_batch_done of the plugins; None if no plugin has that hook."""
    call_hook = plugins.teller_of("core_batch_done")
    if call_hook is None:
        return None

    def done(batch: Batch, error: BaseException | None) -> None:
        start_ns, end_ns = batch.start_ns, batch.end_ns
        timing = BatchTiming(
            requests=len(batch.requests),
            rows=batch.rows,
            start_ns=start_ns,
            compute_start_ns=batch.compute_start_ns or start_ns,
            compute_end_ns=batch.compute_end_ns or end_ns,
            end_ns=end_ns,
            error=error,
        )
        call_hook(model=model, timing=timing)

    return done
