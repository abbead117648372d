"""Rules of dynamic_batching."""

from __future__ import annotations

from core.config.messages import ModelConfig, ModelQueuePolicy
from core.errors import invalid


def check_dynamic_batching(config: ModelConfig) -> None:
    batching = config.dynamic_batching
    for size in batching.preferred_batch_size:
        if size <= 0:
            raise invalid(f"dynamic batching preferred size must be positive for {config.name}")
        if size > config.max_batch_size:
            raise invalid(
                f"dynamic batching preferred size must be <= max batch size for {config.name}"
            )
    if batching.priority_levels:
        _check_priorities(config)
    if batching.preserve_ordering:
        _check_ordering(config)


def _check_priorities(config: ModelConfig) -> None:
    batching = config.dynamic_batching
    levels = batching.priority_levels
    if not 1 <= batching.default_priority_level <= levels:
        raise invalid(f"default priority level must be in range [1, {levels}] for {config.name}")
    if not all(1 <= level <= levels for level in batching.priority_queue_policy):
        raise invalid(
            f"priority queue policy must have priority level in range [1, {levels}] "
            f"for {config.name}"
        )


def _check_ordering(config: ModelConfig) -> None:
    """Nothing that could let one request overtake another."""
    batching = config.dynamic_batching
    if batching.priority_levels > 1:
        raise invalid(
            f"Only one priority level is allowed when 'preserve_ordering' is true for {config.name}"
        )
    policies = [batching.default_queue_policy, *batching.priority_queue_policy.values()]
    for policy in policies:
        if policy.timeout_action == ModelQueuePolicy.DELAY and policy.default_timeout_microseconds:
            raise invalid(
                "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is "
                f"true for {config.name}"
            )
