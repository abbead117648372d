"""Chain: everything between a frontend and the instances of one model version.

Composed once, at load, in one visible expression (see `_compose`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from core import plugins
from core.backend import BatchRule, Model, ModelInstance
from core.batch import Batch
from core.caches import Cache
from core.config import ModelConfig, Signature
from core.config.messages import ModelQueuePolicy
from core.errors import CoreError
from core.hookspecs import BatchTiming
from core.host_policy import HostPolicies
from core.pipeline.admit import Admission
from core.pipeline.answers.delivery import Terms
from core.pipeline.batching.batcher import BatchLimits, GroupingBatcher, InOrder, SingleBatcher
from core.pipeline.batching.group import group_key
from core.pipeline.batching.queue import QueuePolicy, RequestQueue, Waiting
from core.pipeline.batching.rule import rules_of
from core.pipeline.batching.scheduler import Scheduler
from core.pipeline.cache import Cached
from core.pipeline.instances.change import Change
from core.pipeline.instances.groups import matched, seats_of
from core.pipeline.instances.limit import RateLimiter
from core.pipeline.instances.pool import Pool
from core.pipeline.instances.worker import Worker
from core.pipeline.intake import Door, Handler, Intake
from core.pipeline.layers import Layer, Layered, layers_of
from core.pipeline.sequence import SequenceScheduler
from core.pipeline.warmup import warmup_batches
from core.request import InferenceRequest
from core.response import Reply
from core.telemetry.statistics import Statistics

logger = logging.getLogger("core")


class Chain:
    """The opened instances of one model version and the way to them. Loop thread only.

    handler      its door: request → Reply; raises CoreError for what is refused at once
    statistics   of the version
    content      a digest of what it was loaded from
    rooms        what a request goes through behind admission, in this order, down to the scheduler
    """

    def __init__(
        self,
        config: ModelConfig,
        signature: Signature,
        loop: asyncio.AbstractEventLoop,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        cache: Cache | None = None,
        limiter: RateLimiter | None = None,
        content: str = "",
        policies: HostPolicies | None = None,
        layers: Sequence[Layer] = (),
        batch_done: Callable[[Batch, BaseException | None], None] | None = None,
        statistics: Statistics | None = None,
        rules: Callable[[], BatchRule] | None = None,
        early: bool = True,
    ):
        self.signature = signature
        self.statistics = statistics or Statistics()
        self._loop = loop
        self._clock_ns = clock_ns
        self._cache = cache
        self.content = content
        self._intake = Intake(loop)
        terms = Terms(signature, self.statistics, loop, self._intake, clock_ns)
        terms.batch_done = batch_done
        self._layers = layers
        self._pool = Pool(terms, limiter)
        self._policies = policies or HostPolicies({})
        self._scheduler = self._make_scheduler(config, rules, early)
        self._pool.on_idle = self._scheduler.pump
        terms.put_back = self._scheduler.put_back
        self._terms = terms
        self.handler = self._compose(config)

    def _compose(self, config: ModelConfig) -> Door:
        admit = Admission(self.signature, self._clock_ns)
        scheduled: Handler = self._scheduler
        self.rooms: list[Handler] = [scheduled]
        if config.dynamic_batching.preserve_ordering:
            scheduled = InOrder(scheduled)
            self.rooms.insert(0, scheduled)
        if self._cache is not None and config.response_cache.enable:
            scheduled = Cached(
                scheduled,
                self._cache,
                self.signature,
                self.statistics,
                self._intake.ended,
                self._clock_ns,
                lambda: self.content,
            )
            self.rooms.insert(0, scheduled)
        if self._layers:
            scheduled = Layered(self._layers, scheduled, self._intake)
            self.rooms.insert(0, scheduled)
        return Door(self._intake, admit, scheduled)

    def _make_scheduler(
        self, config: ModelConfig, rules: Callable[[], BatchRule] | None, early: bool
    ) -> Scheduler:
        key = group_key(self.signature) if self.signature.max_batch_size else None
        if config.HasField("sequence_batching"):
            return SequenceScheduler(
                config=config,
                signature=self.signature,
                statistics=self.statistics,
                loop=self._loop,
                pool=self._pool,
                on_final=self._intake.ended,
                key=key,
                clock_ns=self._clock_ns,
            )
        limits = batch_limits(config)
        return (SingleBatcher if limits.alone else GroupingBatcher)(
            queue=request_queue(config),
            limits=limits,
            statistics=self.statistics,
            loop=self._loop,
            pool=self._pool,
            on_final=self._intake.ended,
            key=key,
            rules=rules,
            clock_ns=self._clock_ns,
            early=early,
        )

    @property
    def pending(self) -> int:
        """Requests that wait for an instance."""
        return self._scheduler.pending

    @property
    def pending_by_priority(self) -> dict[int, int]:
        """The same by level; empty for a model without priorities."""
        return self._scheduler.pending_by_priority()

    @property
    def instances(self) -> int:
        """How many instances serve."""
        return len(self._pool.workers)

    @property
    def opened(self) -> list[ModelInstance]:
        """The instances that serve and those that stand by."""
        return [worker.instance for worker in self._pool.workers + self._pool.passive]

    @property
    def in_flight(self) -> int:
        """Accepted requests without their last answer, waiting or running."""
        return self._intake.in_flight

    @property
    def ready(self) -> bool:
        """Whether an instance can serve."""
        return self._pool.ready

    @property
    def takes_device(self) -> bool:
        """Whether an instance takes arrays on devices as they are."""
        return self._pool.takes_device

    async def check(self) -> bool:
        """The same, after the instances have been asked."""
        return await self._pool.check()

    async def prepare(self, model: Model) -> Change:
        """Open the instances that the model's configuration asks for and that are not there yet.

        Each executes the samples for its warmup; nothing else is changed before the change is committed.
        The exception of an instance's open() is raised as it is, after the others have closed.
        """
        self._terms.checks_outputs = model.checks_outputs
        self._terms.output_hint = model.output_hint
        batches = (
            await self._loop.run_in_executor(
                None, warmup_batches, model.config, self.signature, model.directory
            )
            if model.config.model_warmup
            else []
        )
        wanted = seats_of(model.config, self._policies)
        there = [
            worker
            for worker in self._pool.workers + self._pool.passive
            if worker.broken is None and not worker.leaves
        ]
        indices, missing = matched([worker.seat for worker in there], wanted)
        kept = [there[index] for index in indices]
        opened = await self._pool.open(model, missing)
        try:
            for worker in opened:
                if not worker.seat.passive:
                    await self._warm_up(worker, batches)
        except BaseException:
            await self._pool.discard(opened)
            raise
        leaving = [
            worker
            for worker in self._pool.workers + self._pool.passive
            if worker not in kept and not worker.leaves
        ]
        return Change(self._pool, self._scheduler, opened, kept, leaving)

    async def _warm_up(
        self, worker: Worker, batches: list[tuple[str, list[InferenceRequest]]]
    ) -> None:
        """Execute every sample on one instance; what goes wrong is logged, not fatal, as in Triton."""
        for name, requests in batches:
            if worker.broken is not None:
                return
            batch = [Waiting(request, Reply(request)) for request in requests]
            for waiting in batch:
                self._intake.enter()
                waiting.request.arrival_ns = self._clock_ns()
            await self._pool.try_out(batch, worker)
            for waiting in batch:
                async for answer in waiting.reply:
                    if isinstance(answer, CoreError):
                        logger.warning(
                            "warmup sample '%s' of instance '%s' failed: %s",
                            name,
                            worker.instance.name,
                            answer.message,
                        )

    async def drain(self) -> None:
        """Refuse new requests and wait for the last answer of those that were accepted."""
        self._intake.close()
        self._scheduler.nothing_follows()
        await self._intake.drain()

    def nothing_follows(self) -> None:
        """Nobody is left who could ask the model for more. What it has taken it answers."""
        self._scheduler.nothing_follows()

    async def close(self) -> None:
        """Close the instances, each where it ran. A second call does nothing."""
        self._intake.close()
        self._scheduler.close()
        await self._pool.close()


async def open_chain(
    model: Model,
    signature: Signature,
    *,
    loop: asyncio.AbstractEventLoop,
    clock_ns: Callable[[], int] = time.monotonic_ns,
    cache: Cache | None = None,
    limiter: RateLimiter | None = None,
    content: str = "",
    policies: HostPolicies | None = None,
    statistics: Statistics | None = None,
    early: bool = True,
) -> Chain:
    """Open the instances of a loaded model and the chain before them.

    cache     of the server, for models that ask for it
    limiter   of the server, None without a rate limit
    content   a digest of what the version was loaded from: other files, other answers in the cache
    policies  that --host-policy describes, None for none
    statistics  to count in, None for new ones
    early     whether a request is refused at once whose deadline cannot be met
    The exception of an instance's open() is raised as it is, after the other instances have closed; that of
    a plugin's core_layers before any has opened.
    """
    chain = Chain(
        model.config,
        signature,
        loop,
        clock_ns,
        cache,
        limiter,
        content,
        policies,
        layers_of(model),
        batch_teller(model),
        statistics,
        rules_of(model),
        early,
    )
    (await chain.prepare(model)).commit()
    return chain


def batch_teller(model: Model) -> Callable[[Batch, BaseException | None], None] | None:
    """Who tells plugins of each execution of a model; None while none of them listens."""
    teller = plugins.teller_of("core_batch_done")
    if teller is None:
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
        teller(model=model, timing=timing)

    return done


def batch_limits(config: ModelConfig) -> BatchLimits:
    """What dynamic_batching allows; without it every request runs alone."""
    if not config.HasField("dynamic_batching") or not config.max_batch_size:
        return BatchLimits(most_rows=max(1, config.max_batch_size), alone=True)
    batching = config.dynamic_batching
    return BatchLimits(
        most_rows=config.max_batch_size,
        preferred=tuple(batching.preferred_batch_size),
        delay_ns=batching.max_queue_delay_microseconds * 1000,
        alone=False,
    )


def request_queue(config: ModelConfig) -> RequestQueue:
    """The queue that the policies of dynamic_batching describe; unbounded without it."""
    if not config.HasField("dynamic_batching"):
        return RequestQueue()
    batching = config.dynamic_batching
    return RequestQueue(
        _policy(batching.default_queue_policy),
        batching.priority_levels,
        batching.default_priority_level,
        {level: _policy(policy) for level, policy in batching.priority_queue_policy.items()},
    )


def _policy(message: ModelQueuePolicy) -> QueuePolicy:
    return QueuePolicy(
        timeout_us=message.default_timeout_microseconds,
        delay=message.timeout_action == ModelQueuePolicy.DELAY,
        may_override=message.allow_timeout_override,
        size=message.max_queue_size,
    )
