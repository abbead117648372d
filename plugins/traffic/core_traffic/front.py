"""Front: the endpoint of a model for requests that name no version.

EndpointTable ─► ModelEndpoint ─► [Front] ─► Choice ─► ModelEndpoint of a version ─► Reply
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace

from core.config.signature import Signature
from core.errors import CoreError, unavailable
from core.governing import Admission, InFlightRequests, ModelEndpoint
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core.telemetry.tracing import Trace
from core_traffic.arm import Arm, result_of
from core_traffic.choice import Choice, Sequences
from core_traffic.copies import Copy
from core_traffic.shadow import Shadow


def front_endpoint(
    front: Front, signature: Signature, loop: asyncio.AbstractEventLoop
) -> ModelEndpoint:
    """Return the endpoint that admits requests by `signature` and hands them to `front`."""
    # The endpoint of the version checks again: inputs must keep the shape that clients send.
    inputs = {name: replace(spec, reshape=None) for name, spec in signature.inputs.items()}
    in_flight = InFlightRequests(loop)

    def counted(request: InferenceRequest) -> Reply:
        reply = front(request)
        in_flight.leave()  # the version counts it until its end
        return reply

    return ModelEndpoint(in_flight, Admission(replace(signature, inputs=inputs)), counted)


class Front:
    """Hands each request to one version, and counts it in the arm of that version. Event loop only.

    name        of the model
    endpoints   version → its endpoint, for all versions that can answer
    arms        version → its counters, for the same versions
    sequences   None for a model without sequences
    shadow      copies requests; None for no copies
    """

    def __init__(
        self,
        name: str,
        choice: Choice,
        endpoints: Mapping[int, ModelEndpoint],
        arms: Mapping[int, Arm],
        sequences: Sequences | None,
        shadow: Shadow | None = None,
    ):
        self._name = name
        self._choice = choice
        self._endpoints = endpoints
        self._arms = arms
        self._sequences = sequences
        self._shadow = shadow

    def __call__(self, request: InferenceRequest) -> Reply:
        if self._sequences is not None and request.correlation_id:
            number = self._sequences.version_of(request, self._choice.of, self._endpoints)
        else:
            number = self._choice.of(request)
        if number is None:
            raise unavailable(
                f"no version of model '{self._name}' that has a weight in its traffic is ready; change the "
                "traffic, or name a version"
            )
        if isinstance(request.trace, Trace):
            request.trace.model_version = number
        arm, shadow = self._arms[number], self._shadow
        # Before the version, which may reshape the inputs.
        copy = None if shadow is None else shadow.copy_of(request, number)
        begun_ns = time.monotonic_ns()
        try:
            reply = self._endpoints[number].submit(request)
        except CoreError as error:
            arm.ended(result_of(error), time.monotonic_ns() - begun_ns)
            if shadow is not None and copy is not None:
                shadow.refused(copy)
            raise
        outer = Reply(request)
        reply.listen(Counted(outer, arm, begun_ns, copy))
        return outer


class Counted:
    """Listener that sends each item on, and counts the request in its arm at the end.

    copy   of the request, which gets each item after the caller; None for none
    """

    def __init__(self, reply: Reply, arm: Arm, begun_ns: int, copy: Copy | None = None):
        self._reply = reply
        self._arm = arm
        self._begun_ns = begun_ns
        self._copy = copy
        self._latency_ns = 0
        self._error: CoreError | None = None
        arm.in_flight += 1

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        if not self._latency_ns:
            self._latency_ns = time.monotonic_ns() - self._begun_ns
        if isinstance(item, CoreError):
            self._error = item
        if final:
            self._arm.in_flight -= 1
            self._arm.ended(result_of(self._error), self._latency_ns)
        self._reply.send(item, final)
        if self._copy is not None:
            self._copy.take(item, final, self._reply.request.cancelled)


def difference(one: Signature, other: Signature) -> str:
    """Return why requests for the version `one` do not fit the version `other`; "" if they do."""
    if one.decoupled != other.decoupled:
        return "only one of the two is decoupled"
    if one.max_batch_size != other.max_batch_size:
        return f"max_batch_size is {other.max_batch_size} and not {one.max_batch_size}"
    for name, spec in one.inputs.items():
        if (found := other.inputs.get(name)) is None:
            return f"it has no input '{name}'"
        if found.dtype is not spec.dtype:
            return f"input '{name}' has the datatype {found.dtype} and not {spec.dtype}"
        if not _accepts(found.dims, spec.dims):
            return f"input '{name}' has the shape {list(found.dims)} and not {list(spec.dims)}"
        if spec.optional and not found.optional:
            return f"input '{name}' is not optional"
    for name, spec in other.inputs.items():
        if name not in one.inputs and not spec.optional:
            return f"it needs the input '{name}'"
    for name, output in one.outputs.items():
        if name not in other.outputs:
            return f"it has no output '{name}'"
        if (dtype := other.outputs[name].dtype) is not output.dtype:
            return f"output '{name}' has the datatype {dtype} and not {output.dtype}"
    return ""


def _accepts(dims: tuple[int, ...], others: tuple[int, ...]) -> bool:
    """Return whether shapes that fit `others` fit `dims`."""
    return len(dims) == len(others) and all(
        dim in (-1, other) for dim, other in zip(dims, others, strict=True)
    )
