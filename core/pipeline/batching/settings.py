"""What a model's configuration says about queues and batches."""

from __future__ import annotations

from core.config import ModelConfig
from core.config.messages import ModelQueuePolicy
from core.pipeline.batching.batcher import BatchLimits
from core.pipeline.batching.queue import QueuePolicy, QueueSettings


def batch_limits(config: ModelConfig) -> BatchLimits:
    """Return the limits of dynamic_batching. Without it or max_batch_size, each request runs alone."""
    if not config.HasField("dynamic_batching") or not config.max_batch_size:
        return BatchLimits(most_rows=max(1, config.max_batch_size), alone=True)
    batching = config.dynamic_batching
    return BatchLimits(
        most_rows=config.max_batch_size,
        preferred=tuple(batching.preferred_batch_size),
        delay_ns=batching.max_queue_delay_microseconds * 1000,
        alone=False,
    )


def queue_settings(config: ModelConfig) -> QueueSettings:
    """Return the arguments of RequestQueue by dynamic_batching. Without it the queue is unbounded."""
    batching = config.dynamic_batching
    return (
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
