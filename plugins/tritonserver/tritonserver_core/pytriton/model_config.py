"""What a program says about a model: tensors, batching, queue, warmup."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class DeviceKind(enum.Enum):
    """Kind of the device of instances. Functions use the devices that they choose."""

    KIND_AUTO = "KIND_AUTO"
    KIND_CPU = "KIND_CPU"
    KIND_GPU = "KIND_GPU"


class TimeoutAction(enum.Enum):
    """What happens to a request whose time in the queue is over."""

    REJECT = "REJECT"
    DELAY = "DELAY"


@dataclass
class QueuePolicy:
    """Limits of a queue. A default_timeout_microseconds or max_queue_size of 0 is no limit."""

    timeout_action: TimeoutAction = TimeoutAction.REJECT
    default_timeout_microseconds: int = 0
    allow_timeout_override: bool = False
    max_queue_size: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the message ModelQueuePolicy of config.pbtxt."""
        return {
            "timeout_action": self.timeout_action.value,
            "default_timeout_microseconds": self.default_timeout_microseconds,
            "allow_timeout_override": self.allow_timeout_override,
            "max_queue_size": self.max_queue_size,
        }


@dataclass
class DynamicBatcher:
    """Settings of the dynamic batcher, by the names of config.pbtxt."""

    max_queue_delay_microseconds: int = 0
    preferred_batch_size: list[int] | None = None
    preserve_ordering: bool = False
    priority_levels: int = 0
    default_priority_level: int = 0
    default_queue_policy: QueuePolicy | None = None
    priority_queue_policy: dict[int, QueuePolicy] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the message ModelDynamicBatching of config.pbtxt."""
        found: dict[str, Any] = {
            "max_queue_delay_microseconds": self.max_queue_delay_microseconds,
            "preferred_batch_size": list(self.preferred_batch_size or ()),
            "preserve_ordering": self.preserve_ordering,
            "priority_levels": self.priority_levels,
            "default_priority_level": self.default_priority_level,
        }
        if self.default_queue_policy is not None:
            found["default_queue_policy"] = self.default_queue_policy.as_json()
        if self.priority_queue_policy:
            found["priority_queue_policy"] = {
                str(level): each.as_json() for level, each in self.priority_queue_policy.items()
            }
        return found


@dataclass
class WarmupInput:
    """One input of warmup requests: zeros, random values, or the array of a .npy file.

    shape   of one row
    """

    dtype: Any
    shape: Sequence[int]
    zero_data: bool = False
    random_data: bool = False
    input_data_file: str | None = None


@dataclass
class ModelWarmup:
    """Requests that a function gets before the model is ready.

    count   number of requests
    """

    name: str
    batch_size: int
    inputs: dict[str, WarmupInput]
    count: int = 1


@dataclass
class ModelConfig:
    """Settings of a model.

    batching    whether the first dimension of tensors is the batch
    batcher     None: each execution has one request
    decoupled   whether a request has any number of responses
    """

    batching: bool = True
    max_batch_size: int = 4
    batcher: DynamicBatcher | None = field(default_factory=DynamicBatcher)
    response_cache: bool = False
    decoupled: bool = False
    model_warmup: list[ModelWarmup] | None = None


@dataclass(frozen=True)
class Tensor:
    """Datatype and shape of an input or an output.

    shape   of one row, if the model batches; -1 for any size
    dtype   a type of numpy; np.bytes_, np.object_, bytes or object for text
    name    None: INPUT_1, INPUT_2, … or OUTPUT_1, …
    """

    shape: tuple[int, ...]
    dtype: Any
    name: str | None = None
    optional: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.dtype, np.dtype):
            object.__setattr__(self, "dtype", self.dtype.type)


@dataclass
class BoundConfig:
    """What decorators find out about the model of a function: `ModelConfig` and its named tensors."""

    model_name: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    config: ModelConfig
    model_version: int = 1

    @property
    def batching(self) -> bool:
        return self.config.batching

    @property
    def max_batch_size(self) -> int:
        return self.config.max_batch_size

    @property
    def batcher(self) -> DynamicBatcher | None:
        return self.config.batcher

    @property
    def decoupled(self) -> bool:
        return self.config.decoupled
