"""InferenceRequest: a request that a model receives, or creates to call another model."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backend_python.api.arguments import number, text
from backend_python.api.errors import TritonError, TritonModelException
from backend_python.api.host import Answers, Host, Key, current
from backend_python.api.iterator import ResponseIterator
from backend_python.api.response import InferenceResponse, Parameters, parameters_json
from backend_python.api.sender import InferenceResponseSender
from backend_python.api.tensor import Tensor

if TYPE_CHECKING:
    import asyncio

    import cython
else:
    from backend_python import uncompiled as cython

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2


class MemoryType(enum.IntEnum):
    """The kind of memory for the outputs of a called model."""

    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1


class PreferredMemory:
    """The memory that the caller prefers for the outputs of a called model."""

    __slots__ = ("device_id", "memory_type")

    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0):
        self.memory_type = MemoryType(preferred_memory_type)
        self.device_id = number("PreferredMemory: device id", preferred_device_id, -(2**63), 2**63)


class InferenceTrace:
    """The trace of a request; a call with this object becomes part of the trace."""

    __slots__ = ("_context", "_key")

    def __init__(self, context: str | None = None, _key: Key | None = None):
        self._context = context
        self._key = _key  # of the traced request; None if the model created the trace

    def get_context(self) -> str | None:
        """Return the OpenTelemetry carrier (traceparent, tracestate) as JSON; None if there is none."""
        return self._context


@cython.freelist(64)
@cython.cclass
class InferenceRequest:
    """A request of a client (in execute), or one that the model creates to call another model.

    correlation_id   int or str; 0 for none
    timeout          set by the client, µs; 0 for none
    parameters       {str: bool | int | float | str}
    """

    _host: Host | None  # for a client's request; None if the model created it
    _batch: Any  # the key is (_batch, _index)
    _index: int
    _inputs: list[Tensor]
    _outputs: frozenset[str]
    _decoupled: bool
    _sender: InferenceResponseSender | None
    _release_flags: int
    _request_id: str
    _correlation_id: int | str
    _flags: int
    _timeout: int
    _parameters: str
    _trace: InferenceTrace | str | None  # only the context until `trace` is called
    model_name: str
    model_version: int
    preferred_memory: PreferredMemory | None

    def __init__(
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        inputs: Sequence[Tensor] | None = None,
        requested_output_names: Sequence[str] | None = None,
        model_name: str | None = None,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory | None = None,
        trace: InferenceTrace | None = None,
        parameters: Parameters | None = None,
    ):
        for name, value in (
            ("inputs", inputs),
            ("requested_output_names", requested_output_names),
            ("model_name", model_name),
        ):
            if value is None:
                raise TypeError(f"InferenceRequest: {name} is missing")
        assert inputs is not None and requested_output_names is not None
        request_id = text("InferenceRequest: request_id", request_id)
        model_name = text("InferenceRequest: model_name", model_name)
        model_version = number("InferenceRequest: model_version", model_version, -(2**63), 2**63)
        _check("preferred_memory", preferred_memory, (PreferredMemory, type(None)))
        _check("trace", trace, (InferenceTrace, type(None)))
        if not isinstance(correlation_id, str):
            if isinstance(correlation_id, bool) or not isinstance(correlation_id, int):
                raise TritonModelException("Correlation ID must be integer or string")
            correlation_id = number("InferenceRequest: correlation_id", correlation_id, 0, 2**64)
        asked = f"for request with id '{request_id}' and model name '{model_name}'"
        for tensor in inputs:
            if tensor is None:
                raise TritonModelException(f"Input tensor {asked} should not be empty.")
            _check("inputs, a list of Tensor,", tensor, Tensor)
        if isinstance(requested_output_names, (str, bytes, bytearray)):
            raise TypeError(
                "InferenceRequest: requested_output_names must be a list, "
                f"found a {type(requested_output_names).__name__}"
            )
        what = "InferenceRequest: requested_output_names, a list of str,"
        outputs = frozenset(text(what, name) for name in requested_output_names)
        if "" in outputs:
            raise TritonModelException(f"Requested output name {asked} should not be empty.")
        self._host = None
        self._batch = None
        self._index = 0
        self._sender = None
        self._decoupled = False
        self._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
        self._request_id = request_id
        self._correlation_id = correlation_id
        self._inputs = list(inputs)
        self._outputs = outputs
        self._flags = number("InferenceRequest: flags", flags, 0, 2**32)
        self._timeout = number("InferenceRequest: timeout", timeout, 0, 2**64)
        self._trace = trace or InferenceTrace()
        self._parameters = "" if parameters is None else parameters_json(parameters)
        self.model_name = model_name
        self.model_version = model_version
        self.preferred_memory = preferred_memory

    @property
    def _key(self) -> Key:
        """The key of the request in calls of the host."""
        return self._batch, self._index

    def inputs(self) -> list[Tensor]:
        return self._inputs

    def request_id(self) -> str:
        return self._request_id

    def correlation_id(self) -> int | str:
        return self._correlation_id

    def flags(self) -> int:
        """Return the flags: TRITONSERVER_REQUEST_FLAG_SEQUENCE_START and _END."""
        return self._flags

    def set_flags(self, flags: int) -> None:
        self._flags = number("InferenceRequest: flags", flags, 0, 2**32)

    def timeout(self) -> int:
        return self._timeout

    def parameters(self) -> str:
        """Return the parameters as a JSON object."""
        return self._parameters or "{}"

    def trace(self) -> InferenceTrace:
        trace = self._trace
        if not isinstance(trace, InferenceTrace):
            trace = self._trace = InferenceTrace(trace, self._key)
        return trace

    def requested_output_names(self) -> set[str]:
        """Return the names of the requested outputs; all of the model's if the client named none."""
        return set(self._outputs)

    def is_cancelled(self) -> bool:
        """Return whether the request is cancelled; False for a request that the model created."""
        return self._host is not None and self._host.is_cancelled(self._key)

    def get_response_sender(self) -> InferenceResponseSender | None:
        """Return the sender of this request's responses; None for a request that the model created."""
        if self._sender is None and self._host is not None:
            self._sender = InferenceResponseSender(
                self._host, self._key, self._outputs, self._decoupled
            )
        return self._sender

    def set_release_flags(self, flags: int) -> None:
        """Set the action after execute: TRITONSERVER_REQUEST_RELEASE_ALL, or …_RESCHEDULE, which passes the
        request to a later execute."""
        self._release_flags = int(flags)

    def exec(self, decoupled: bool = False) -> InferenceResponse | ResponseIterator:
        """Call the model and wait. Return its InferenceResponse, or if `decoupled` an iterator of all.

        A failed call returns a response with an error. Raises TritonModelException outside of execute, and
        where waiting would block the server (EXECUTION_MODE inline).
        """
        answers = self._begin(decoupled, blocking=True)
        if decoupled:
            return ResponseIterator(answers)
        return answers.wait() or _none()

    def async_exec(
        self, decoupled: bool = False
    ) -> asyncio.Future[InferenceResponse | ResponseIterator]:
        """Call the model without waiting; the result of the future is the return value of `exec`.

        If the future is cancelled, the call is cancelled. The iterator supports `async for`, and `for`,
        which blocks its thread. Raises RuntimeError outside of a coroutine.
        """
        import asyncio  # a model with coroutines has imported it

        loop = asyncio.get_running_loop()
        answers = self._begin(decoupled, blocking=False)
        if not decoupled:
            return loop.create_task(_only(answers))
        future = loop.create_future()
        future.set_result(ResponseIterator(answers))
        return future

    def _begin(self, decoupled: bool, *, blocking: bool) -> Answers:
        if self._host is not None:
            raise TritonModelException(
                "A request that came to the model cannot be executed; make an InferenceRequest with "
                "the name of the model to call."
            )
        return current().infer(self, bool(decoupled), blocking=blocking)


def received(
    host: Host,
    batch: Any,
    index: int,
    inputs: list[Tensor],
    outputs: frozenset[str],
    decoupled: bool,
) -> InferenceRequest:
    """Return a request from the server with inputs and default values; (batch, index) is its key."""
    request: InferenceRequest = InferenceRequest.__new__(InferenceRequest)
    request._host = host
    request._batch = batch
    request._index = index
    request._inputs = inputs
    request._outputs = outputs
    request._decoupled = decoupled
    request._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
    request._request_id = ""
    request._correlation_id = 0
    request._flags = 0
    request._timeout = 0
    request._parameters = ""
    request._trace = None
    request._sender = None
    if decoupled:
        request._sender = InferenceResponseSender(host, (batch, index), outputs, True)
    return request


def all_received(
    host: Host,
    batch: Any,
    inputs: list[list[Tensor]],
    outputs: frozenset[str],
    decoupled: bool,
) -> list[InferenceRequest]:
    """Return the requests of a batch with inputs and default values; their keys are (batch, index)."""
    requests = []
    for index in range(len(inputs)):
        requests.append(received(host, batch, index, inputs[index], outputs, decoupled))
    return requests


async def _only(answers: Answers) -> InferenceResponse | ResponseIterator:
    try:
        return await answers.arrival() or _none()
    except BaseException:  # the caller was cancelled: cancel the call
        answers.drop()
        raise


def _check(name: str, value: Any, expected: type | tuple[type, ...]) -> None:
    if not isinstance(value, expected):
        raise TypeError(f"InferenceRequest: {name} must not have a {type(value)}")


def _none() -> InferenceResponse:
    return InferenceResponse(error=TritonError("An error occurred while performing BLS request."))
