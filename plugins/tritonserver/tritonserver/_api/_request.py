"""InferenceRequest: the request of a program ─► core.InferenceRequest."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from core.request import InferenceRequest as CoreRequest
from core.request import RequestedOutput
from core.tensor import Tensor as CoreTensor
from frontends.in_process.values import request_of, tensor_of
from tritonserver._api._allocators import MemoryAllocator
from tritonserver._api._enums import RequestFlag
from tritonserver._api._errors import InvalidArgumentError, raised_as_triton
from tritonserver._api._memorybuffer import DeviceOrMemoryType
from tritonserver._api._tensor import Tensor

if TYPE_CHECKING:
    from tritonserver._api._model import Model
    from tritonserver._api._response import InferenceResponse

_PARAMETERS = (str, int, float, bool)


@dataclass
class InferenceRequest:
    """A request to a model.

    request_id           returned with the responses
    flags                1 for the first request of a sequence, 2 for its last, 3 for both
    correlation_id       of the sequence
    priority             1 is the highest; 0 is the model's default
    timeout              longest time in the queue, in microseconds, if the model allows it; 0 for no limit
    inputs               name → Tensor, numpy array, list, or array with `__dlpack__`. They are not copied
    parameters           for the model: name → str, int, bool or float
    output_memory_type   where the outputs shall be; None for the host
    response_queue       gets every response as well, without iteration: a queue.SimpleQueue for `infer`, an
                         asyncio.Queue for `async_infer`
    output_memory_allocator   gives the memory for the outputs
    requested_outputs    names, or core.RequestedOutput, such as with `class_count`; empty for all outputs
    """

    model: Model
    request_id: str | None = None
    flags: int = 0
    correlation_id: int | str | None = None
    priority: int = 0
    timeout: int = 0
    inputs: dict[str, Tensor | Any] = field(default_factory=dict)
    parameters: dict[str, str | int | bool | float] = field(default_factory=dict)
    output_memory_type: DeviceOrMemoryType | None = None
    response_queue: (
        queue.SimpleQueue[InferenceResponse] | asyncio.Queue[InferenceResponse] | None
    ) = None
    output_memory_allocator: MemoryAllocator | None = None
    requested_outputs: Sequence[str | RequestedOutput] = ()

    def _as_core(self) -> CoreRequest:
        """Return the request as core's. Raises InvalidArgumentError for an invalid field."""
        for name, value in self.parameters.items():
            if type(value) not in _PARAMETERS:
                raise InvalidArgumentError(
                    f"parameter '{name}' is {value!r} of type {type(value).__name__}; give a str, int, "
                    "float or bool"
                )
        flags = int(self.flags)
        with raised_as_triton():
            return request_of(
                self.model.name,
                {name: _input(name, value) for name, value in self.inputs.items()},
                version=self.model.version,
                id=self.request_id or "",
                outputs=self.requested_outputs,
                parameters=self.parameters,
                correlation_id=self.correlation_id or 0,
                sequence_start=bool(flags & RequestFlag.SEQUENCE_START.value),
                sequence_end=bool(flags & RequestFlag.SEQUENCE_END.value),
                priority=self.priority,
                queue_timeout_us=self.timeout,
            )


def _input(name: str, value: Any) -> CoreTensor:
    if type(value) is np.ndarray and value.dtype != object:
        return tensor_of(name, value)  # the shortest way, without a copy
    tensor = value if isinstance(value, Tensor) else Tensor._from_object(value)
    return tensor._as_core(name)
