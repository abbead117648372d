"""Batch: the requests that one execute call answers.

queue & group ─► [Batch] ─► execute ─► split.  Gathering is lazy: a backend that never asks for
`batch["x"]` never pays for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import cython
import numpy as np

from core import dtypes
from core.config.signature import Signature
from core.errors import CoreError, Kind
from core.native.gather import gather
from core.request import InferenceRequest, Parameter
from core.settle import Settle
from core.tensor import Tensor, array_tensor


class Delivery(Protocol):
    """Where the answers of one batch go: the pipeline. Any thread."""

    def respond(
        self,
        i: int,
        outputs: Mapping[str, Any] | list[Tensor],
        parameters: dict[str, Parameter] | None,
        final: bool,
    ) -> None: ...

    def respond_all(self, answers: list[list[Tensor]]) -> None: ...

    def fail(self, i: int, error: CoreError, final: bool, failure: bool) -> None: ...

    def finish(self, i: int) -> None: ...

    def defer(self, i: int) -> None: ...

    def reschedule(self, i: int) -> None: ...


@cython.freelist(32)
@cython.cclass
class Batch:
    """Requests that run together.

    requests    in the order of their rows; each has .inputs, .parameters, .id, .flags, .rows,
                .cancelled, .correlation_id, .deadline_ns, .outputs
    rows        sum of the requests' rows
    signature   inputs and outputs of the model (core.config.Signature)

    `batch["x"]` is input x with the rows of all requests, one array. For one request it is a
    read-only view of the request's bytes; for several it is a new array that the backend may keep.

    Written by the instance's thread while it executes, by nobody else.
    """

    def __init__(self, requests: list[InferenceRequest], signature: Signature, delivery: Delivery):
        self.requests = requests
        self.signature = signature
        self.delivery = delivery
        self.rows = rows_of(requests)
        self._gathered: dict[str, np.ndarray] | None = None  # input → array, of several requests
        self.start_ns = 0
        self.compute_start_ns = 0
        self.compute_end_ns = 0
        self.end_ns = 0

    def __len__(self) -> int:
        return len(self.requests)

    def __contains__(self, name: str) -> bool:
        return name in self.requests[0].inputs

    def __iter__(self) -> Iterator[str]:
        """Names of the inputs that the requests carry (all carry the same)."""
        return iter(self.requests[0].inputs)

    def __getitem__(self, name: str) -> np.ndarray:
        """Input `name` of all requests, one below the other.

        Shape [rows, …] for a model with a batch dimension, else the request's own shape. BYTES are
        object arrays of `bytes`. An input that may be ragged (`allow_ragged_batch`) has one
        dimension: the elements of all requests, one request behind the other.
        KeyError if the requests do not carry it.
        """
        if len(self.requests) == 1:
            return self._only(name)
        if self._gathered is None:
            self._gathered = {}
        if (array := self._gathered.get(name)) is None:
            array = self._gathered[name] = self._gather(name)
        return array

    def _only(self, name: str) -> np.ndarray:
        """The input of the one request, whose tensor keeps its array."""
        request = self.requests[0]
        tensor = request.inputs[name]
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
        rows = 0
        for tensor in tensors:
            rows += tensor.shape[0]
        out = np.empty((rows, *first.shape[1:]), first.dtype.numpy)
        if out.size:
            gather(_raws(tensors), out)
        return out

    def arrays(self) -> list[list[tuple[str, int, np.ndarray]]]:
        """Of each request its inputs: name, number of the datatype, array. For models that get requests
        and not batches."""
        found = []
        for request in self.requests:
            inputs = []
            for tensor in request.inputs.values():
                inputs.append((tensor.name, tensor.dtype.number, tensor._as_array()))
            found.append(inputs)
        return found

    def told(self) -> list[int]:
        """The places of the requests that have more for a model than their inputs; most have not."""
        found = []
        for i in range(len(self.requests)):
            request = self.requests[i]
            if not request.is_bare():
                found.append(i)
        return found

    def wanted(self, names: list[str]) -> list[str]:
        """The outputs that a model has to give: those that some request wants, and its states.

        names   of all outputs of the model, states too
        Returns some of them in their order, or `names` itself for all.
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
        """Gather every input now, and mark the time: what follows counts as inference.

        Optional; without it gathering counts as inference time.
        """
        for name in self:
            self[name]
        self.compute_start_ns = time.monotonic_ns()

    def outputs_ready(self) -> None:
        """Mark the time: what follows counts as output time. Optional."""
        self.compute_end_ns = time.monotonic_ns()

    def respond(
        self,
        i: int,
        outputs: Mapping[str, Any] | list[Tensor],
        parameters: dict[str, Parameter] | None = None,
        *,
        final: bool = True,
    ) -> None:
        """Answer request `i` alone. From any thread.

        outputs     {name: array} or a list of Tensor, with the rows of this request; outputs that the
                    client did not ask for are dropped
        parameters  of the response
        final       False if more answers follow (decoupled models only)
        An output that the model's configuration does not have becomes an error for this request.
        """
        self.delivery.respond(i, outputs, parameters, final)

    def respond_all(self, answers: list[list[Any]]) -> None:
        """Answer every request that has no answer yet, each with the tensors at its place. Before the
        execution is over, instance's thread.

        answers   of each request a list of its own, which is the batch's from here on, of Tensor or of
                  (name, number of the datatype, array); then it is not BYTES, and in C order
        """
        for i in range(len(answers)):
            outputs = answers[i]
            for j in range(len(outputs)):
                output = outputs[j]
                if type(output) is tuple:
                    name, number, array = output
                    outputs[j] = array_tensor(name, number, array)
        self.delivery.respond_all(answers)

    def on_cancel(self, listener: Callable[[], None]) -> None:
        """Call `listener` for each request that is cancelled before its last answer. Loop thread."""
        for request in self.requests:
            request.on_cancel(listener)

    def fail(
        self, i: int, error: CoreError | str, *, final: bool = True, failure: bool = False
    ) -> None:
        """Answer request `i` with an error. From any thread.

        failure   True for an exception of the execution; False if the model answered with an error on
                  purpose, which Triton's statistics count as a success
        """
        if not isinstance(error, CoreError):
            error = CoreError(Kind.INTERNAL, error)
        self.delivery.fail(i, error, final, failure)

    async def room(self, i: int) -> None:
        """Wait until the client of request `i` has room for more answers. On the loop.

        For a coroutine that gives many answers (decoupled models): await it after each of them.
        It returns when the request is cancelled too.
        """
        loop = asyncio.get_running_loop()
        free = loop.create_future()
        # Through the loop, behind the answers that are on their way to who counts them.
        loop.call_soon(self.requests[i].when_free, Settle(free))
        await free

    def finish(self, i: int) -> None:
        """No more answers to request `i` (decoupled models). From any thread."""
        self.delivery.finish(i)

    def defer(self, i: int) -> None:
        """Request `i` is answered after execute has returned. Before that return, instance's thread.

        Without it, a request that execute leaves unanswered gets an error. Decoupled models need not
        call it: their requests end with the final answer.
        """
        self.delivery.defer(i)

    def reschedule(self, i: int) -> None:
        """Request `i` goes back to the scheduler: it comes again in a later batch, with what it had.

        Before execute returns, instance's thread. It may have had answers before (final=False).
        """
        self.delivery.reschedule(i)


def made_batch(requests: list[InferenceRequest], signature: Signature, delivery: Delivery) -> Batch:
    """Batch(…) for who makes one for every execution."""
    batch: Batch = Batch.__new__(Batch)
    batch.requests = requests
    batch.signature = signature
    batch.delivery = delivery
    batch.rows = rows_of(requests)
    batch._gathered = None
    batch.start_ns = batch.compute_start_ns = batch.compute_end_ns = batch.end_ns = 0
    return batch


def _raws(tensors: list[Tensor]) -> list[Any]:
    """The wire bytes of each."""
    found = []
    for tensor in tensors:
        found.append(tensor._as_raw())
    return found


def rows_of(requests: list[InferenceRequest]) -> int:
    """Sum of the requests' rows."""
    rows = 0
    for request in requests:
        rows += request.rows
    return rows
