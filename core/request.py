"""InferenceRequest: the request of a client to one model.

frontend ─► [InferenceRequest] ─► admit ─► …  A frontend creates it; `admit` checks it once and sets `rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cython

from core.tensor import Tensor

NEWEST = -1  # a model_version: the newest version that is ready

SEQUENCE_START = 1
SEQUENCE_END = 2

Parameter = bool | int | float | str


class RequestedOutput:
    """An output that the client requests.

    class_count   0 for the tensor itself; n for its n best classes (classification extension)
    memory        memory of the client for the output: a writable memoryview, or a DevicePlace
                  (core.output_memory); None to send it in the response
    """

    def __init__(self, name: str, class_count: int = 0, memory: Any = None):
        self.name = name
        self.class_count = class_count
        self.memory = memory

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, class_count={self.class_count})"


class DeviceOutput(RequestedOutput):
    """A requested output that may stay on the device where the model made it.

    host   whether it is needed in host memory too; the model's thread then copies it
    """

    def __init__(self, name: str, host: bool = False):
        super().__init__(name)
        self.host = host


@cython.freelist(32)
@cython.cclass
class InferenceRequest:
    """One request to one model. The frontend writes it; afterwards only the event loop does.

    model_name       as the client wrote it
    model_version    -1 for the newest ready version
    id               the client's name for the request; "" for none
    inputs           name → Tensor, in the client's order
    outputs          requested outputs; empty for all
    parameters       custom parameters, name → bool | int | float | str
    correlation_id   sequence of the request: int or str; 0 or "" for none
    flags            SEQUENCE_START | SEQUENCE_END
    caller           number of who has sent it, for layers of plugins; 0 if unknown
    priority         1 is the highest; 0 for the model's default
    timeout_us       longest time in the queue that the client wants; 0 for none
    deadline_ns      time.monotonic_ns() at which the client stops waiting; 0 for none
    trace            trace of the request; or None
    shared           whether inputs or outputs are in memory that the client may change at any time
    parent           the client's request, if this one is for a step of an ensemble; or None
    paused           whether the client is behind with reading responses; see `when_free`
    arrival_ns       time.monotonic_ns() of the admission (set by admit)
    rows             batch size; 1 for a model without a batch dimension (set by admit)
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
        self._reset(model_name, inputs)
        self.model_version = model_version
        self.id = id
        self.outputs = outputs
        self._parameters = parameters
        self.correlation_id = correlation_id
        self.flags = flags
        self.priority = priority
        self.timeout_us = timeout_us
        self.deadline_ns = deadline_ns
        self.trace = trace
        self.shared = shared

    def _reset(self, model_name: str, inputs: dict[str, Tensor]) -> None:
        """Set every field to its default, except the arguments."""
        self.model_name = model_name
        self.model_version = -1
        self.id = ""
        self.inputs = inputs
        self.outputs = ()
        self._parameters = self.trace = None
        self.correlation_id = self.priority = self.timeout_us = 0
        self.flags = self.caller = 0
        self.deadline_ns = self.arrival_ns = 0
        self.rows = 1
        self.shared = self.cancelled = self.paused = False
        self.parent: InferenceRequest | None = None
        # One listener, or a list of them.
        self._on_cancel: Callable[[], None] | list[Callable[[], None]] | None = None
        self._over = False  # cancelled, or the final response is on its way
        self._when_free: list[Callable[[], None]] | None = None

    def copy_with(self, inputs: dict[str, Tensor]) -> InferenceRequest:
        """Return a copy with these inputs, unadmitted, without caller, deadline_ns, trace, shared, parent."""
        request = new_request(self.model_name, inputs)
        request.model_version = self.model_version
        request.id = self.id
        request.outputs = self.outputs
        request._parameters = self._parameters
        request.correlation_id = self.correlation_id
        request.flags = self.flags
        request.priority = self.priority
        request.timeout_us = self.timeout_us
        return request

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Custom parameters. The dict is created on first use, since most requests have none."""
        if self._parameters is None:
            self._parameters = {}
        return self._parameters

    @parameters.setter
    def parameters(self, parameters: dict[str, Parameter]) -> None:
        self._parameters = parameters

    @property
    def has_parameters(self) -> bool:
        """Whether there are custom parameters."""
        return bool(self._parameters)

    def has_only_inputs(self) -> bool:
        """Return whether a model finds nothing but inputs: no id, parameters, requested outputs, trace, …"""
        if self.flags or self.trace is not None or self._parameters:
            return False
        return not (self.id or self.outputs or self.correlation_id or self.timeout_us)

    def placed(self, name: str) -> bool:
        """Return whether output `name` goes into memory of the client, so the response has no data for it."""
        if self.shared:
            for output in self.outputs:
                if output.name == name:
                    return output.memory is not None
        return False

    def cancel(self) -> None:
        """Remove the request from its queue, or notify the running model; once. Event loop only."""
        if self.cancelled:
            return
        self.cancelled = True
        listeners, self._on_cancel = self._on_cancel, None
        if isinstance(listeners, list):
            for listener in listeners:
                listener()
        elif listeners is not None:
            listeners()
        self.finish()

    def on_cancel(self, listener: Callable[[], None]) -> None:
        """Call `listener` once when the request is cancelled; at once if it already is. Event loop only."""
        if self.cancelled:
            listener()
        elif self._on_cancel is None:
            self._on_cancel = listener
        elif isinstance(self._on_cancel, list):
            self._on_cancel.append(listener)
        else:
            self._on_cancel = [self._on_cancel, listener]

    def off_cancel(self, listener: Callable[[], None]) -> None:
        """Remove a listener of `on_cancel`. Event loop only."""
        if isinstance(self._on_cancel, list):
            if listener in self._on_cancel:
                self._on_cancel.remove(listener)
        elif self._on_cancel == listener:
            self._on_cancel = None

    @property
    def over(self) -> bool:
        """Whether it is cancelled or its final response is on its way. Event loop only."""
        return self.cancelled or self._over

    def finish(self) -> None:
        """Make the request `over`, drop its `on_cancel` listeners, resume it if paused. Event loop only."""
        self._on_cancel = None
        self._over = True
        if self.paused:
            self.resume()

    def pause(self) -> None:
        """Set `paused`: `when_free` waits for `resume`. No effect if the request is over. Event loop only."""
        self.paused = not self._over

    def resume(self) -> None:
        """Clear `paused`, whoever set it; call listeners, unless the parent is paused. Event loop only."""
        self.paused = False
        waiting, self._when_free = self._when_free, None
        if waiting is not None:
            for listener in waiting:
                self.when_free(listener)  # the parent may still be paused

    def when_free(self, listener: Callable[[], None]) -> None:
        """Call `listener` once when more responses may be sent; at once if they may. Event loop only.

        A request that is over is always free. A request with a parent also waits for the parent.
        """
        if not self.paused:
            if self.parent is not None and not self._over:
                self.parent.when_free(listener)
            else:
                listener()
        elif self._when_free is None:
            self._when_free = [listener]
        else:
            self._when_free.append(listener)

    def __repr__(self) -> str:
        inputs = list(self.inputs.values())
        return f"InferenceRequest({self.model_name!r}, id={self.id!r}, {inputs})"


def new_request(model_name: str, inputs: dict[str, Tensor]) -> InferenceRequest:
    """Return InferenceRequest(model_name, inputs) without a call of its constructor, which is slower."""
    request: InferenceRequest = InferenceRequest.__new__(InferenceRequest)
    request._reset(model_name, inputs)
    return request


def repeated_input(name: str) -> str:
    """Return the text for two inputs of one name."""
    return f"input '{name}' already exists in request"
