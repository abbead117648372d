"""Arrays of the caller ─► [tensors_of] ─► Tensor. InferenceResponse ─► [Response] ─► arrays.

Nothing is copied where it need not be: a tensor is the memory of the caller's array, read-only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
"""name → numpy array, anything with `__dlpack__`, a list of str or bytes, a core.Tensor."""


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
) -> InferenceRequest:
    """A request for the model, as a frontend would make it. Any thread.

    Raises CoreError(INVALID) for an input that is no tensor, and for whatever else cannot be in a request.
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
    """What the caller gave for input `name`, read-only. Raises CoreError(INVALID) for other things."""
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
        return Tensor.of(name, value)  # with the text for a type that the protocol does not have
    array: np.ndarray = value.view(np.uint16) if dtype is dtypes.BF16 else value.view()
    if array.dtype is not dtype.numpy and array.dtype != dtype.numpy:
        array = array.astype(dtype.numpy)  # another byte order
    if not array.flags.c_contiguous:
        array = array.copy(order="C")
    array.setflags(write=False)  # our view alone
    return new_tensor(name, dtype, array.shape, None, array)


def _exported(name: str, value: Any) -> np.ndarray:
    """The memory of another library's array, shared by DLPack."""
    if not hasattr(value, "__dlpack__") or isinstance(value, np.generic):
        raise invalid(
            f"input '{name}' is a {type(value).__name__}: give a numpy array, an array with "
            "__dlpack__, or a list of str or bytes; a single value as np.array([[value]], dtype)"
        )
    try:
        return np.from_dlpack(value)
    except Exception as error:  # each library has its own: other devices, gradients, types
        device = getattr(value, "device", "")
        raise invalid(
            f"input '{name}', a {type(value).__module__}.{type(value).__name__}"
            f"{f' on {device}' if device else ''}, cannot be read as an array of the host: {error}"
        ) from error


def _texts(name: str, values: Sequence[Any]) -> np.ndarray:
    """A list of str or bytes, or a nested one, as an array of them."""
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
    """One answer: name of an output → numpy array; one that was asked for as core.DeviceOutput, and that
    the model made on a device, is what the model gave. One thread at a time.

    The arrays are the model's own, or rows of what it gave for a whole batch. They stay valid; one
    that a model has passed on from its input is the caller's memory, and read-only. BYTES are arrays
    of `bytes` objects, BF16 are its bit patterns as uint16.
    """

    # Not those of Mapping: to compare arrays gives arrays.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, answer: InferenceResponse):
        self._answer = answer

    def __getitem__(self, name: str) -> Any:
        tensor = self.tensor(name)
        return tensor.array if type(tensor) is Tensor else tensor.value

    def __iter__(self) -> Iterator[str]:
        return (tensor.name for tensor in self._answer.outputs)

    def __len__(self) -> int:
        return len(self._answer.outputs)

    def tensor(self, name: str) -> Tensor:
        """The output with its datatype and its wire form. Raises KeyError if there is none."""
        try:
            return self._answer.output(name)
        except KeyError:
            there = ", ".join(self) or "none"
            raise KeyError(
                f"model '{self.model_name}' gave no output {name!r}; its outputs are {there}"
            ) from None

    @property
    def model_name(self) -> str:
        return self._answer.model_name

    @property
    def model_version(self) -> int:
        return self._answer.model_version

    @property
    def id(self) -> str:
        """As the request has it."""
        return self._answer.id

    @property
    def parameters(self) -> dict[str, Parameter]:
        """What the model says beside the tensors."""
        return self._answer.parameters

    def __repr__(self) -> str:
        outputs = ", ".join(repr(tensor) for tensor in self._answer.outputs)
        return f"Response({self.model_name!r} {self.model_version}: {outputs})"


class Timeout(CoreError, TimeoutError):
    """`timeout` has passed before the last answer came; the request is cancelled."""
