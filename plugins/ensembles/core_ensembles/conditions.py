"""The models of conditions and fallbacks. They answer at once, on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import numpy as np

from core.dtypes import BOOL
from core.errors import CoreError, internal
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core.tensor import Tensor
from core_ensembles.arranging import OTHER, VALUE, Decision

LARGE = 1 << 18
"""Elements from which on a condition is evaluated on a thread: the event loop would wait for milliseconds."""

FLAGS = {value: Tensor(VALUE, BOOL, (1,), array=np.array([value])) for value in (False, True)}
"""The answers of conditions."""


class ConditionModel:
    """Makes the tensor of one condition. Not thread-safe: call from the event loop only.

    counted   called with whether the step runs
    """

    def __init__(
        self, decision: Decision, loop: asyncio.AbstractEventLoop, counted: Callable[[bool], None]
    ):
        self._decision = decision
        self._loop = loop
        self._counted = counted

    def __call__(self, request: InferenceRequest) -> Reply:
        """Return the answer. Raises CoreError(INVALID) for values that are no condition."""
        tensors = dict(request.inputs)
        if sum(tensor.count for tensor in tensors.values()) >= LARGE:
            return self._on_thread(request, tensors)
        return _answered(request, self._answer(self._decision.expression.holds(tensors)))

    def _answer(self, holds: bool) -> Tensor:
        self._counted(holds is self._decision.runs_if)
        return FLAGS[holds is not self._decision.inverse]

    def _on_thread(self, request: InferenceRequest, tensors: Mapping[str, Tensor]) -> Reply:
        reply = Reply(request)
        # A tensor belongs to one thread at a time; copies share its buffer.
        copies = {name: tensor.renamed(name) for name, tensor in tensors.items()}
        evaluation = self._loop.run_in_executor(None, self._decision.expression.holds, copies)

        def done(future: asyncio.Future[bool]) -> None:
            if future.cancelled():
                reply.fail(internal("the server stops"))
            elif isinstance(error := future.exception(), CoreError):
                reply.fail(error)
            elif error is not None:
                reply.fail(internal(f"{type(error).__name__}: {error}"))
            else:
                reply.send(_response(request, self._answer(future.result())), True)

        evaluation.add_done_callback(done)
        return reply


def passed(request: InferenceRequest) -> Reply:
    """Return the input VALUE if the request has it, else the input OTHER."""
    inputs = request.inputs
    return _answered(request, inputs[VALUE if VALUE in inputs else OTHER].renamed(VALUE))


def _answered(request: InferenceRequest, tensor: Tensor) -> Reply:
    reply = Reply(request)
    reply.send(_response(request, tensor), True)
    return reply


def _response(request: InferenceRequest, tensor: Tensor) -> InferenceResponse:
    return InferenceResponse(request.model_name, 1, [tensor])
