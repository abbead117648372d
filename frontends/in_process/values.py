"""Arrays of the program ─► [request_of] ─► InferenceRequest. InferenceResponse ─► [Response] ─► arrays.

A tensor is a read-only view of the program's array. An array is copied only if it is not contiguous or has
another byte order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from core import dtypes
from core.config.model_version import parse_version
from core.errors import CoreError, invalid
from core.request import (
    NEWEST,
    SEQUENCE_END,
    SEQUENCE_START,
    InferenceRequest,
    Parameter,
    RequestedOutput,
    new_request,
)
from core.response import InferenceResponse
from core.tensor import Tensor, is_on_device, new_tensor

Inputs = Mapping[str, Any]
"""name → numpy array, array with `__dlpack__`, list of str or bytes, or core.Tensor."""


class RequestFields(TypedDict, total=False):
    """The optional fields of a request.

    version           of the model, by default the newest
    id                returned with the response
    outputs           requested outputs, as names or core.RequestedOutput; by default all. An output given
                      as core.DeviceOutput may stay on a device
    parameters        for the model: name → bool | int | float | str
    correlation_id    of the sequence that the request belongs to
    sequence_start, sequence_end   whether the request is the first, the last of its sequence
    priority          1 is the highest; 0 is the model's default
    queue_timeout_us  longest time in the queue, in microseconds, if the model allows it; 0 for no limit
    traceparent       of the caller's span (W3C Trace Context), whose trace the request joins; an invalid one
                      is ignored
    """

    version: int | str
    id: str
    outputs: Sequence[str | RequestedOutput]
    parameters: Mapping[str, Parameter] | None
    correlation_id: int | str
    sequence_start: bool
    sequence_end: bool
    priority: int
    queue_timeout_us: int
    traceparent: str | None


def request_of(
    model: str,
    inputs: Inputs,
    *,
    version: int | str = NEWEST,
    id: str = "",
    outputs: Sequence[str | RequestedOutput] = (),
    parameters: Mapping[str, Parameter] | None = None,
    correlation_id: int | str = 0,
    sequence_start: bool = False,
    sequence_end: bool = False,
    priority: int = 0,
    queue_timeout_us: int = 0,
    traceparent: str | None = None,
) -> InferenceRequest:
    """Return a request for `model`; the other arguments are those of RequestFields. Any thread.

    Raises CoreError(INVALID) for an input that is not a tensor and for an invalid value of a field.
    """
    if type(model) is not str:
        model = _text("model", model)
    if type(inputs) is not dict and not isinstance(inputs, Mapping):
        raise invalid(
            f"the inputs for model '{model}' are a {type(inputs).__name__}: give a dict of name and "
            "array"
        )
    request = new_request(model, {name: tensor_of(name, value) for name, value in inputs.items()})
    if isinstance(version, str):
        request.model_version = parse_version(version)
    elif version != NEWEST:
        request.model_version = _whole("version", version, 63)
    if id != "":
        request.id = _text("id", id)
    if outputs:
        if isinstance(outputs, str):
            raise invalid(f"outputs={outputs!r} is one text: give a list, [{outputs!r}]")
        request.outputs = tuple(_output(each) for each in outputs)
    if parameters:
        request.parameters = _parameters(parameters)
    if correlation_id:
        request.correlation_id = (
            correlation_id
            if isinstance(correlation_id, str)
            else _whole("correlation_id", correlation_id, 64)
        )
    if sequence_start or sequence_end:
        request.flags = SEQUENCE_START * bool(sequence_start) | SEQUENCE_END * bool(sequence_end)
    if priority:
        request.priority = _whole("priority", priority, 32)
    if queue_timeout_us:
        request.timeout_us = _whole("queue_timeout_us", queue_timeout_us, 63)
    if traceparent is not None:
        request.trace = _text("traceparent", traceparent)  # the server makes a context of it
    return request


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid(f"{what}={value!r}: give a str")
    return str(value)


def _whole(what: str, value: Any, bits: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise invalid(f"{what}={value!r}: give a whole number")
    if not 0 <= value < 1 << bits:
        raise invalid(f"{what}={value!r}: give a number from 0 to {(1 << bits) - 1}")
    return int(value)


def _output(value: Any) -> RequestedOutput:
    if isinstance(value, RequestedOutput):
        return value
    if isinstance(value, str):
        return RequestedOutput(value)
    raise invalid(f"outputs hold {value!r}: give names, or core.RequestedOutput")


def _parameters(given: Any) -> dict[str, Parameter]:
    if not isinstance(given, Mapping):
        raise invalid(f"parameters={given!r}: give a dict of name and value")
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, bool | int | float | str):
            raise invalid(
                f"parameters hold {name!r}: {value!r}; names are str, values bool, int, float or str"
            )
    return dict(given)


def tensor_of(name: str, value: Any) -> Tensor:
    """Return the value of input `name` as a tensor.

    A numpy array of numbers, or what DLPack makes of an array in host memory, becomes a read-only view.
    Raises CoreError(INVALID) for a value of a type that Inputs does not permit.
    """
    if type(value) is not np.ndarray:
        if isinstance(value, Tensor):
            return value if value.name == name else value.renamed(name)
        if isinstance(value, list | tuple):
            return Tensor.of(name, _texts(name, value))
        if is_on_device(value):
            return Tensor.of(name, value)
        value = value.view(np.ndarray) if isinstance(value, np.ndarray) else _exported(name, value)
    dtype = dtypes.of_numpy(value.dtype)
    if dtype is None or dtype is dtypes.BYTES:
        if value.dtype == object:
            _refuse_others(name, value)
        return Tensor.of(name, value)  # raises the error for a dtype that the protocol lacks
    array: np.ndarray = value.view(np.uint16) if dtype is dtypes.BF16 else value.view()
    if array.dtype is not dtype.numpy and array.dtype != dtype.numpy:
        array = array.astype(dtype.numpy)  # another byte order
    if not array.flags.c_contiguous:
        array = array.copy(order="C")
    array.setflags(write=False)  # this view only
    return new_tensor(name, dtype, array.shape, None, array)


def _exported(name: str, value: Any) -> np.ndarray:
    """Return a numpy view of another library's array in host memory, through DLPack.

    Raises CoreError(INVALID) if the value offers no such view.
    """
    if not hasattr(value, "__dlpack__") or isinstance(value, np.generic):
        raise invalid(
            f"input '{name}' is a {type(value).__name__}: give a numpy array, an array with "
            "__dlpack__, or a list of str or bytes; a single value as np.array([[value]], dtype)"
        )
    try:
        return np.from_dlpack(value)
    except Exception as error:  # libraries raise different types, for devices, gradients, dtypes
        device = getattr(value, "device", "")
        raise invalid(
            f"input '{name}', a {type(value).__module__}.{type(value).__name__}"
            f"{f' on {device}' if device else ''}, cannot be read as an array of the host: {error}"
        ) from error


def _texts(name: str, values: Sequence[Any]) -> np.ndarray:
    """Return a list of str or bytes, which may be nested, as an array of objects.

    Raises CoreError(INVALID) for other elements, and for nested lists of different lengths.
    """
    try:
        array = np.array(values, dtype=object)
    except ValueError as error:
        raise invalid(f"input '{name}' is no regular list of lists: {error}") from None
    if any(isinstance(item, list | tuple) for item in array.ravel().tolist()):
        raise invalid(f"input '{name}' is a list of lists of different lengths")
    _refuse_others(name, array)
    return array


def _refuse_others(name: str, array: np.ndarray) -> None:
    for item in array.ravel().tolist():
        if not isinstance(item, str | bytes):
            raise invalid(
                f"input '{name}' holds a {type(item).__name__} among its elements; a list or an array "
                "of objects may hold str and bytes only: give numbers as a numpy array with a dtype"
            )


class Response(Mapping[str, Any]):
    """One response: name of an output → numpy array. Not thread-safe.

    An output that was requested as core.DeviceOutput is the model's device array, if the model produced one.
    The arrays are the model's own, or rows of the output of a batch, and stay valid. If a model returns
    its input, the array is the program's input and read-only. BYTES are arrays of `bytes` objects, BF16
    are bit patterns as uint16. A response equals only itself.
    """

    # Mapping compares the values, but comparing arrays gives arrays.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, response: InferenceResponse):
        self._response = response

    def __getitem__(self, name: str) -> Any:
        tensor = self.tensor(name)
        return tensor.array if type(tensor) is Tensor else tensor.value

    def __iter__(self) -> Iterator[str]:
        return (tensor.name for tensor in self._response.outputs)

    def __len__(self) -> int:
        return len(self._response.outputs)

    def tensor(self, name: str) -> Tensor:
        """Return an output with its datatype and wire form. Raises KeyError for an unknown name."""
        try:
            return self._response.output(name)
        except KeyError:
            there = ", ".join(self) or "none"
            raise KeyError(
                f"model '{self.model_name}' gave no output {name!r}; its outputs are {there}"
            ) from None

    @property
    def model_name(self) -> str:
        return self._response.model_name

    @property
    def model_version(self) -> int:
        return self._response.model_version

    @property
    def id(self) -> str:
        return self._response.id

    @property
    def parameters(self) -> dict[str, Parameter]:
        return self._response.parameters

    def __repr__(self) -> str:
        outputs = ", ".join(repr(tensor) for tensor in self._response.outputs)
        return f"Response({self.model_name!r} {self.model_version}: {outputs})"


class Timeout(CoreError, TimeoutError):
    """The last response did not arrive within `timeout`; the request is cancelled."""
