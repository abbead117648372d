"""What a chain uses from outside: services of the server, hooks of the model and of plugins."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core import plugins
from core.backend import BatchRule, Model
from core.batch import Batch
from core.caches import Cache
from core.hookspecs import BatchTiming
from core.host_policy import HostPolicies
from core.pipeline.answers.context import BatchDone
from core.pipeline.batching.rule import rules_of
from core.pipeline.instances.rate_limiter import RateLimiter
from core.pipeline.layers import Layer, layers_of


@dataclass(frozen=True)
class ChainServices:
    """Services of the server for the chains of its models.

    cache      for models with response_cache; or None
    limiter    the rate limiter; or None
    policies   of --host-policy; or None
    early      whether a request that cannot meet its deadline is refused at once
    """

    loop: asyncio.AbstractEventLoop
    clock_ns: Callable[[], int] = time.monotonic_ns
    cache: Cache | None = None
    limiter: RateLimiter | None = None
    policies: HostPolicies | None = None
    early: bool = True


@dataclass(frozen=True)
class ModelHooks:
    """Code of the model and of plugins that a chain calls.

    layers       around the handler, the outermost first
    batch_done   called after each execution; or None
    rules        returns the rule for the next batch; or None
    """

    layers: Sequence[Layer] = ()
    batch_done: BatchDone | None = None
    rules: Callable[[], BatchRule] | None = None


NO_HOOKS = ModelHooks()


def hooks_of(model: Model) -> ModelHooks:
    """Return the hooks for a model. Raise what a plugin's core_layers or core_batch_rule raises."""
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
