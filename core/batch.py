"""Batch: the requests that one execute call answers.

queue & group ─► [Batch] ─► execute ─► split.  Inputs are gathered on first use of `batch["x"]`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import cython
import numpy as np

from core import dtypes
from core.config.signature import Signature
from core.errors import CoreError, Kind
from core.future_setter import FutureSetter
from core.native.arrays import joint_view
from core.native.gather import gather
from core.request import InferenceRequest, Parameter
from core.tensor import Tensor, array_tensor


@cython.freelist(32)
@cython.cclass
class Batch:
    """Requests that run together. While it executes, only the thread of the instance may write to it.

    requests    in the order of their rows (core.InferenceRequest)
    rows        sum of the requests' rows
    signature   inputs and outputs of the model (core.config.Signature)
    delivery    takes the responses; a BatchDelivery of core.pipeline
    """

    def __init__(self, requests: list[InferenceRequest], signature: Signature, delivery: Any):
        self._reset(requests, signature, delivery)

    def _reset(self, requests: list[InferenceRequest], signature: Signature, delivery: Any) -> None:
        self.requests = requests
        self.signature = signature
        self.delivery = delivery
        self.rows = 0
        for request in requests:
            self.rows += request.rows
        self._gathered: dict[str, np.ndarray] | None = None  # input → array, of several requests
        self.start_ns = self.compute_start_ns = self.compute_end_ns = self.end_ns = 0

    def __len__(self) -> int:
        return len(self.requests)

    def __contains__(self, name: str) -> bool:
        return name in self.requests[0].inputs

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the inputs, which all requests of a batch share."""
        return iter(self.requests[0].inputs)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return input `name` with the rows of all requests. Raise KeyError if the requests do not have it.

        It may be a view of a request's bytes, or of what an earlier step returned: do not write to it. Of
        several requests, the backend may keep it. Its shape is [rows, …] with a batch dimension, else the
        request's. BYTES are object arrays of `bytes`. A ragged input (`allow_ragged_batch`) has one
        dimension: the elements of the first request, then of the second, ….
        """
        if len(self.requests) == 1:
            return self._only(name)
        if self._gathered is None:
            self._gathered = {}
        if (array := self._gathered.get(name)) is None:
            array = self._gathered[name] = self._gather(name)
        return array

    def _only(self, name: str) -> np.ndarray:
        """Return input `name` of the only request, flattened if it is ragged."""
        tensor = self.requests[0].inputs[name]
        spec = self.signature.inputs.get(name)  # None for controls and states of a sequence
        if spec is not None and spec.ragged:
            return tensor._as_array().reshape(-1)
        return tensor._as_array()

    def _gather(self, name: str) -> np.ndarray:
        tensors: list[Tensor] = []
        for request in self.requests:
            tensors.append(request.inputs[name])
        first = tensors[0]
        spec = self.signature.inputs.get(name)
        if spec is not None and spec.ragged:
            return np.concatenate([tensor.array.reshape(-1) for tensor in tensors])
        if first.dtype is dtypes.BYTES:
            return np.concatenate([tensor.array for tensor in tensors])
        if first._array is not None:  # an earlier step may have returned these rows together
            arrays = [tensor._as_array() for tensor in tensors]
            if (whole := joint_view(arrays, first.dtype.numpy)) is not None:
                return whole
        rows, raws = 0, []
        for tensor in tensors:
            rows += tensor.shape[0]
            raws.append(tensor._as_raw())
        out = np.empty((rows, *first.shape[1:]), first.dtype.numpy)
        if out.size:
            gather(raws, out)
        return out

    def arrays(self) -> list[list[tuple[str, int, np.ndarray]]]:
        """Return a list for each request: (name, number of the datatype, array) of each of its inputs."""
        found = []
        for request in self.requests:
            inputs = []
            for tensor in request.inputs.values():
                inputs.append((tensor.name, tensor.dtype.number, tensor._as_array()))
            found.append(inputs)
        return found

    def indices_with_details(self) -> list[int]:
        """Return the indices of requests with more than inputs: an id, parameters, requested outputs, …"""
        found = []
        for i in range(len(self.requests)):
            request = self.requests[i]
            if not request.has_only_inputs():
                found.append(i)
        return found

    def wanted(self, names: list[str]) -> list[str]:
        """Return the `names` that are states or that a request wants; `names` itself for one name or for all.

        names   of all outputs and states of the model
        """
        if len(names) == 1:
            return names
        wanted: set[str] = set()
        for request in self.requests:
            if not request.outputs:
                return names
            for output in request.outputs:
                wanted.add(output.name)
            if len(wanted) == len(self.signature.outputs):
                return names
        states = self.signature.states
        return [name for name in names if name in wanted or name in states]

    def inputs_ready(self) -> None:
        """Gather every input now. The time until this call counts as input time. Optional."""
        for name in self:
            self[name]
        self.compute_start_ns = time.monotonic_ns()

    def outputs_ready(self) -> None:
        """End the inference time: what follows counts as output time. Optional."""
        self.compute_end_ns = time.monotonic_ns()

    def respond(
        self,
        i: int,
        outputs: Mapping[str, Any] | list[Tensor],
        parameters: dict[str, Parameter] | None = None,
        *,
        final: bool = True,
    ) -> None:
        """Answer request `i` only. Do nothing if it has its final response. Thread-safe.

        outputs      {name: array} or a list of Tensor, with the rows of this request. Outputs that the client
                     has not requested are dropped; an unknown output becomes an error of this request
        parameters   of the response
        final        False if more responses follow (decoupled models only)
        """
        self.delivery.respond(i, outputs, parameters, final)

    def respond_all(self, answers: list[list[Any]]) -> None:
        """Answer every unanswered request. Call it before execute returns, on its thread.

        answers   for each request, answered or not, a list of Tensor, or of (name, number of the datatype,
                  array in C order, not of BYTES). The batch changes these lists and keeps them
        """
        for outputs in answers:
            for j in range(len(outputs)):
                output = outputs[j]
                if type(output) is tuple:
                    name, number, array = output
                    outputs[j] = array_tensor(name, number, array)
        self.delivery.respond_all(answers)

    def on_cancel(self, listener: Callable[[], None]) -> None:
        """Call `listener` for each request when cancelled; at once if it already is. Event loop only."""
        for request in self.requests:
            request.on_cancel(listener)

    def fail(
        self, i: int, error: CoreError | str, *, final: bool = True, failure: bool = False
    ) -> None:
        """Answer request `i` with an error. Do nothing if it has its final response. Thread-safe.

        failure   True for an exception of execute; as in Triton, statistics count other errors as success
        """
        if not isinstance(error, CoreError):
            error = CoreError(Kind.INTERNAL, error)
        self.delivery.fail(i, error, final, failure)

    async def room(self, i: int) -> None:
        """Wait until the client of request `i` can take more responses, or the request is cancelled.

        For coroutines of decoupled models: await it after each response.
        """
        loop = asyncio.get_running_loop()
        free = loop.create_future()
        # Call it from the loop: responses that are queued there must be counted first.
        loop.call_soon(self.requests[i].when_free, FutureSetter(free))
        await free

    def finish(self, i: int) -> None:
        """End the responses to request `i` (decoupled models). Thread-safe."""
        self.delivery.finish(i)

    def defer(self, i: int) -> None:
        """Announce that request `i` is answered after execute has returned. Call it on the thread of execute.

        Otherwise a request that execute leaves unanswered gets an error. Decoupled models need not call it.
        """
        self.delivery.defer(i)

    def reschedule(self, i: int) -> None:
        """Put request `i` back into the queue after this execution. Call it on the thread of execute.

        It waits last at its priority, first in its sequence. It may have got responses with final=False.
        """
        self.delivery.reschedule(i)


def new_batch(requests: list[InferenceRequest], signature: Signature, delivery: Any) -> Batch:
    """Return Batch(requests, signature, delivery) without a call of its constructor, which is slower."""
    batch: Batch = Batch.__new__(Batch)
    batch._reset(requests, signature, delivery)
    return batch
