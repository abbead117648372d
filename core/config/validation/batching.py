"""Rules of dynamic_batching."""

from __future__ import annotations

from collections.abc import Sequence

from core.config.messages import ModelConfig, ModelQueuePolicy
from core.config.validation.refusal import refused

_HERE = "dynamic_batching"


def check_dynamic_batching(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for wrong preferred batch sizes, priority levels or preserve_ordering."""
    batching = config.dynamic_batching
    sizes = batching.preferred_batch_size
    check_preferred_sizes(config, sizes, "dynamic batching preferred size", _HERE)
    if batching.priority_levels:
        _check_priorities(config)
    if batching.preserve_ordering:
        _check_ordering(config)


def check_preferred_sizes(
    config: ModelConfig, sizes: Sequence[int], what: str, scheduler: str
) -> None:
    """Raise CoreError(INVALID) unless each preferred size is positive and at most max_batch_size.

    what        how error texts name a size
    scheduler   path of the message that has the field preferred_batch_size
    """
    for index, size in enumerate(sizes):
        place = f"{scheduler}.preferred_batch_size[{index}] is {size}"
        if size <= 0:
            raise refused(config, f"{what} must be positive", place)
        if size > config.max_batch_size:
            place += f", max_batch_size is {config.max_batch_size}"
            raise refused(config, f"{what} must be <= max batch size", place)


def _check_priorities(config: ModelConfig) -> None:
    batching = config.dynamic_batching
    levels = batching.priority_levels
    if not 1 <= batching.default_priority_level <= levels:
        raise refused(
            config,
            f"default priority level must be in range [1, {levels}]",
            f"{_HERE}.default_priority_level is {batching.default_priority_level}",
        )
    for level in sorted(batching.priority_queue_policy):
        if not 1 <= level <= levels:
            raise refused(
                config,
                f"priority queue policy must have priority level in range [1, {levels}]",
                f"{_HERE}.priority_queue_policy has the key {level}",
            )


def _check_ordering(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for priority levels or DELAY with a timeout, for preserve_ordering."""
    batching = config.dynamic_batching
    if batching.priority_levels > 1:
        raise refused(
            config,
            "Only one priority level is allowed when 'preserve_ordering' is true",
            f"{_HERE}.priority_levels is {batching.priority_levels}",
        )
    policies = {"default_queue_policy": batching.default_queue_policy}
    for level in sorted(batching.priority_queue_policy):
        policies[f"priority_queue_policy[{level}]"] = batching.priority_queue_policy[level]
    for name, policy in policies.items():
        if policy.timeout_action == ModelQueuePolicy.DELAY and policy.default_timeout_microseconds:
            raise refused(
                config,
                "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true",
                f"{_HERE}.{name}.timeout_action",
            )
