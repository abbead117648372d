"""QueuePolicies: what dynamic_batching of a model says about requests that wait: levels, bounds, timeouts.

A fair queue holds requests before the model's own queue does, so it must keep these rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.config import ModelConfig
from core.config.messages import ModelQueuePolicy
from core.request import InferenceRequest


@dataclass(frozen=True)
class Policy:
    """The rules of one priority level.

    size            most requests that wait; 0 for any number
    timeout_us      after which a request is refused; 0 for never
    may_override    whether a request may shorten it
    """

    size: int = 0
    timeout_us: int = 0
    may_override: bool = False


@dataclass(frozen=True)
class QueuePolicies:
    """The rules of one model.

    levels          number of priority levels; 0 for none
    default_level   of a request without priority
    default         rules of the levels that have none of their own
    config          the rules are read from it
    """

    levels: int = 0
    default_level: int = 0
    default: Policy = Policy()
    by_level: Mapping[int, Policy] = field(default_factory=dict)
    config: ModelConfig | None = field(default=None, compare=False)

    @classmethod
    def of(cls, config: ModelConfig) -> QueuePolicies:
        if not config.HasField("dynamic_batching"):
            return cls(config=config)
        batching = config.dynamic_batching
        return cls(
            batching.priority_levels,
            batching.default_priority_level if batching.priority_levels else 0,
            _policy(batching.default_queue_policy),
            {level: _policy(each) for level, each in batching.priority_queue_policy.items()},
            config,
        )

    def current(self, config: ModelConfig) -> QueuePolicies:
        """Return the rules of a configuration, which may have replaced that of these rules."""
        return self if config is self.config else QueuePolicies.of(config)

    def level(self, request: InferenceRequest) -> int:
        """Return the priority level of a request: 1 is the highest; 0 for a model without levels."""
        return request.priority if 1 <= request.priority <= self.levels else self.default_level

    def size(self, level: int) -> int:
        """Return how many requests may wait; 0 for any number."""
        return self.by_level.get(level, self.default).size

    def timeout_s(self, level: int, request: InferenceRequest) -> float:
        """Return after how many seconds of waiting a request is refused; 0 for never."""
        policy = self.by_level.get(level, self.default)
        timeout_us = policy.timeout_us
        if policy.may_override and 0 < request.timeout_us < timeout_us:
            timeout_us = request.timeout_us
        return timeout_us / 1e6


def _policy(message: ModelQueuePolicy) -> Policy:
    delays = message.timeout_action == ModelQueuePolicy.DELAY
    return Policy(
        size=message.max_queue_size,
        # A request that is only delayed goes on to the model's queue, which delays it.
        timeout_us=0 if delays else message.default_timeout_microseconds,
        may_override=message.allow_timeout_override,
    )
