"""InferenceRequest: what a client asks of one model.

frontend ─► [InferenceRequest] ─► admit ─► …  The frontend fills it from the wire; `admit` checks it
against the model once and writes `rows`; later rooms trust it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import cython

from core.errors import invalid
from core.tensor import Tensor

NEWEST = -1  # a model_version: the newest that is ready

SEQUENCE_START = 1
SEQUENCE_END = 2

Parameter = bool | int | float | str


class RequestedOutput:
    """One output that the client wants.

    class_count   0 for the tensor itself; n for the n best classes (classification extension)
    memory        writable bytes of the client (of a shared memory region) for it: a memoryview, or a
                  DevicePlace of core.memory; None for the reply
    """

    def __init__(self, name: str, class_count: int = 0, memory: Any = None):
        self.name = name
        self.class_count = class_count
        self.memory = memory

    def __repr__(self) -> str:
        return f"RequestedOutput({self.name!r}, class_count={self.class_count})"


class DeviceOutput(RequestedOutput):
    """One output that may stay on the device where the model made it. All others come in host memory.

    host   whether it is wanted in host memory too: then the copy is made before it is handed over
    """

    def __init__(self, name: str, host: bool = False):
        super().__init__(name)
        self.host = host

    def __repr__(self) -> str:
        return f"DeviceOutput({self.name!r}, host={self.host})"


@cython.freelist(32)
@cython.cclass
class InferenceRequest:
    """One request to one model. Written by the frontend, then only on the loop thread.

    model_name       as the client wrote it
    model_version    -1 for the newest ready version
    id               the client's own name for the request, "" if none
    inputs           name → Tensor, in the client's order
    outputs          wanted outputs; empty for all
    parameters       custom parameters, name → bool | int | float | str
    correlation_id   sequence the request belongs to: int, or str; 0 or "" for none
    flags            SEQUENCE_START | SEQUENCE_END
    priority         1 is the highest; 0 for the model's default
    timeout_us       the client's wish for the time in the queue; 0 for none
    deadline_ns      time.monotonic_ns() after which nobody waits for the answer; 0 for none
    trace            what the trace of this request hangs on, or None
    shared           whether inputs or outputs lie in memory that the client may change at any time
    asked_by         the request of the client, for one that an ensemble makes for a step of it; or None
    held             the client is behind with reading answers: who makes them is to wait (`when_free`)
    arrival_ns       time.monotonic_ns() at which the model took it in (written by admit)
    rows             batch size; 1 for a model without a batch dimension (written by admit)
    """

    def __init__(
        self,
        model_name: str,
        inputs: dict[str, Tensor],
        *,
        model_version: int = -1,
        id: str = "",
        outputs: tuple[RequestedOutput, ...] = (),
        parameters: dict[str, Parameter] | None = None,
        correlation_id: int | str = 0,
        flags: int = 0,
        priority: int = 0,
        timeout_us: int = 0,
        deadline_ns: int = 0,
        trace: Any = None,
        shared: bool = False,
    ):
        self.model_name = model_name
        self.model_version = model_version
        self.id = id
        self.inputs = inputs
        self.outputs = outputs
        self._parameters = parameters
        self.correlation_id = correlation_id
        self.flags = flags
        self.priority = priority
        self.timeout_us = timeout_us
        self.deadline_ns = deadline_ns
        self.trace = trace
        self.shared = shared
        self.arrival_ns = 0
        self.rows = 1
        self.cancelled = False
        # One listener, or a list of them.
        self._on_cancel: Callable[[], None] | list[Callable[[], None]] | None = None
        self.asked_by: InferenceRequest | None = None
        self.held = False
        self._over = False  # cancelled, or the last answer is on its way: never held again
        self._when_free: list[Callable[[], None]] | None = None

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Custom parameters; made when somebody asks, since most requests have none."""
        if self._parameters is None:
            self._parameters = {}
        return self._parameters

    @parameters.setter
    def parameters(self, parameters: dict[str, Parameter]) -> None:
        self._parameters = parameters

    @property
    def has_parameters(self) -> bool:
        """Whether there are any."""
        return bool(self._parameters)

    def is_bare(self) -> bool:
        """Whether a model that gets it finds nothing but inputs: it is not traced, and all outputs are
        wanted."""
        return not (
            self.id
            or self.outputs
            or self.flags
            or self.correlation_id
            or self.timeout_us
            or self._parameters
            or self.trace is not None
        )

    def placed(self, name: str) -> bool:
        """Whether output `name` goes into memory of the client, so that the answer has no data for it."""
        if self.shared:
            for output in self.outputs:
                if output.name == name:
                    return output.memory is not None
        return False

    def cancel(self) -> None:
        """Nobody waits any more: leave the queue at once, or tell the running model. Loop thread.

        A second call does nothing.
        """
        if self.cancelled:
            return
        self.cancelled = True
        listeners, self._on_cancel = self._on_cancel, None
        if isinstance(listeners, list):
            for listener in listeners:
                listener()
        elif listeners is not None:
            listeners()
        self._free_for_good()

    def on_cancel(self, listener: Callable[[], None]) -> None:
        """Call `listener` once when the request is cancelled; at once if it already is. Loop thread."""
        if self.cancelled:
            listener()
        elif self._on_cancel is None:
            self._on_cancel = listener
        elif isinstance(self._on_cancel, list):
            self._on_cancel.append(listener)
        else:
            self._on_cancel = [self._on_cancel, listener]

    def off_cancel(self, listener: Callable[[], None]) -> None:
        """Do not call `listener` any more. Loop thread."""
        if isinstance(self._on_cancel, list):
            if listener in self._on_cancel:
                self._on_cancel.remove(listener)
        elif self._on_cancel == listener:
            self._on_cancel = None

    @property
    def over(self) -> bool:
        """Whether nobody waits any more: it is cancelled, or its last answer is on its way. Loop thread."""
        return self.cancelled or self._over

    def ended(self) -> None:
        """The last answer is on its way: forget who waits for a cancellation. Loop thread.

        They hold the request; without this, it and its inputs would stay until the garbage collector
        comes, which for an idle server is never.
        """
        self._on_cancel = None
        self._free_for_good()

    def hold(self) -> None:
        """Too many answers wait for the client: who makes more is to wait until `resume`. Loop thread.

        No effect on a request that is over.
        """
        self.held = not self._over

    def resume(self) -> None:
        """The client has room again. Loop thread."""
        self.held = False
        waiting, self._when_free = self._when_free, None
        if waiting is not None:
            for listener in waiting:
                self.when_free(listener)  # who asked for this one may be held still

    def when_free(self, listener: Callable[[], None]) -> None:
        """Call `listener` once when more answers may be given; at once if they may. Loop thread.

        A request that is cancelled or has its last answer is free; one that another asked for waits
        for that one too.
        """
        if not self.held:
            if self.asked_by is not None and not self._over:
                self.asked_by.when_free(listener)
            else:
                listener()
        elif self._when_free is None:
            self._when_free = [listener]
        else:
            self._when_free.append(listener)

    def _free_for_good(self) -> None:
        self._over = True
        if self.held:
            self.resume()

    def __repr__(self) -> str:
        return (
            f"InferenceRequest({self.model_name!r}, id={self.id!r}, {list(self.inputs.values())})"
        )


def made_request(model_name: str, inputs: dict[str, Tensor]) -> InferenceRequest:
    """InferenceRequest(…) with the defaults, for who makes one for every request."""
    request: InferenceRequest = InferenceRequest.__new__(InferenceRequest)
    request.model_name = model_name
    request.model_version = -1
    request.id = ""
    request.inputs = inputs
    request.outputs = ()
    request._parameters = request.trace = request._on_cancel = None
    request.correlation_id = request.priority = request.timeout_us = 0
    request.flags = 0
    request.deadline_ns = request.arrival_ns = 0
    request.rows = 1
    request.shared = request.cancelled = False
    request.asked_by = request._when_free = None
    request.held = request._over = False
    return request


def parse_version(text: str) -> int:
    """The number of a model version as a client writes it; "" means the newest.

    Raises CoreError(INVALID) with Triton's text.
    """
    if not text:
        return NEWEST
    number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,19}", text) else 2**63
    if not -(2**63) <= number < 2**63:
        raise invalid(
            f"failed to get model version from specified version string '{text}' (details: stol), "
            "version should be an integral value > 0"
        )
    if number < 0:  # -1 too: it means the newest only behind this function
        raise invalid(
            f"invalid model version specified '{text}' , version should be an integral value > 0"
        )
    return number
