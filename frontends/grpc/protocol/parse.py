"""ModelInferRequest → InferenceRequest, with protobuf.

bytes ─► [read] ─► message ─► [parse] ─► InferenceRequest ─► core.  native/infer_request.pyx reads most
requests. This module reads those that are invalid, use shared memory or have rare fields. It checks the form
of a request and that its datatypes exist; the pipeline checks the inputs against the model. The error texts
are Triton's, since clients and their tests match them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core import dtypes
from core.config import Signature
from core.dtypes import DataType
from core.errors import CoreError, invalid
from core.request import InferenceRequest, RequestedOutput, repeated_input
from core.tensor import Buffer, Tensor
from frontends.grpc.protocol import contents, shared_memory
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.messages import InferParameter, ModelInferRequest
from frontends.grpc.protocol.parameters import UINT64, boolean, custom, kind
from frontends.shared.memory import CudaPlace, SharedMemoryRegions
from frontends.shared.v2 import (
    EMPTY_FINAL,
    MOST_DIMENSIONS,
    OWN_PREFIX,
    labelled,
    reserved_parameter,
    set_parameter,
    too_many_dimensions,
)

Input = ModelInferRequest.InferInputTensor


def read(data: bytes) -> ModelInferRequest:
    """Return the message in `data`.

    Raises CoreError(INVALID) if it is no ModelInferRequest or has too many parts.
    """
    return decode(ModelInferRequest, data)


def parse(
    message: ModelInferRequest,
    version: int,
    signature: Signature,
    regions: SharedMemoryRegions,
) -> InferenceRequest:
    """Return the request that a message makes.

    version     version that the client requests, -1 for the newest
    signature   of the model version
    regions     registered shared memory, which inputs and outputs may use
    Raw contents that no input takes are ignored. Raises CoreError(INVALID) for a wrong form or datatype,
    CoreError(NOT_FOUND) for an unknown region.
    """
    outputs = _outputs(message, regions)
    request = InferenceRequest(
        message.model_name, {}, model_version=version, id=message.id, outputs=outputs
    )
    request.shared = any(output.memory is not None for output in outputs)
    if message.parameters:
        for name, parameter in message.parameters.items():
            _set_parameter(request, name, parameter)
    sources = iter(message.raw_input_contents)
    any_raw = bool(message.raw_input_contents)
    for entry in message.inputs:
        name, shape = entry.name, entry.shape
        if len(shape) > MOST_DIMENSIONS:
            raise labelled(message.id, too_many_dimensions(name, shape))
        if name in request.inputs:
            raise labelled(message.id, repeated_input(name))
        dtype = dtypes.BY_NAME.get(entry.datatype)
        place = shared_memory.place(entry.parameters, entry.name)
        if place is None:
            raw = _data(entry, dtype, sources, any_raw, message.model_name)
        elif entry.HasField("contents"):
            raise invalid(
                "unexpected 'content' provided when using shared memory for input tensor "
                f"'{entry.name}' for model '{message.model_name}'"
            )
        else:
            raw = regions.read(*place, dtype)
            request.shared = True
        if dtype is None:
            raise labelled(message.id, _no_datatype(entry, signature))
        if isinstance(raw, CudaPlace):
            request.inputs[name] = raw.tensor(name, dtype, tuple(shape), message.model_name)
        else:
            request.inputs[name] = Tensor(name, dtype, tuple(shape), raw)
    return request


def wants_empty_final(message: ModelInferRequest | InferenceRequest) -> bool:
    """Return whether the client wants an empty final response from a decoupled model.

    An InferenceRequest is one that native/infer_request.pyx has read: it never has this parameter, since such
    messages are left to `parse`.
    """
    if isinstance(message, InferenceRequest):
        return False
    return EMPTY_FINAL in message.parameters and message.parameters[EMPTY_FINAL].bool_param


# Parameters of the request -----------------------------------------------------------


def _set_parameter(request: InferenceRequest, name: str, parameter: InferParameter) -> None:
    if (value_of := _READERS.get(name)) is not None:
        set_parameter(request, name, value_of(name, parameter))
    elif name == EMPTY_FINAL:
        boolean(name, parameter)
    elif name.startswith(OWN_PREFIX):
        raise reserved_parameter(allowed=EMPTY_FINAL)
    else:
        request.parameters[name] = custom(name, parameter)


def _sequence_id(name: str, parameter: InferParameter) -> int | str:
    which = kind(parameter)
    if which == "int64_param":
        return parameter.int64_param % UINT64
    if which == "string_param":
        return parameter.string_param
    raise _wrong_kind(name, "int64_param or string_param")


def _priority(name: str, parameter: InferParameter) -> int:
    which = kind(parameter)
    if which == "uint64_param":
        return parameter.uint64_param
    if which != "int64_param":
        raise _wrong_kind(name, "int64_param or uint64_param")
    if parameter.int64_param < 0:
        raise invalid("invalid value for 'priority', expected value >= 0.")
    return parameter.int64_param


def _timeout(name: str, parameter: InferParameter) -> int:
    if kind(parameter) != "int64_param":
        raise _wrong_kind(name, "int64_param")
    return parameter.int64_param % UINT64


_READERS: dict[str, Callable[[str, InferParameter], bool | int | str]] = {
    "sequence_id": _sequence_id,
    "sequence_start": boolean,
    "sequence_end": boolean,
    "priority": _priority,
    "timeout": _timeout,
}


def _wrong_kind(name: str, expected: str) -> CoreError:
    return invalid(f"invalid value type for '{name}' parameter, expected {expected}.")


# Inputs ---------------------------------------------------------------------------------


def _data(
    entry: Input,
    dtype: DataType | None,
    sources: Iterator[Buffer],
    any_raw: bool,
    model_name: str,
) -> Buffer:
    """Return the bytes of one input: its typed contents, or if it has none, the next of `sources`.

    dtype     None for an unknown datatype, which allows no typed contents
    sources   the raw contents of the message that no input has taken yet
    any_raw   whether the message has raw contents at all: then no input may have typed ones
    Raises CoreError(INVALID) for both kinds in one message, for typed contents of another datatype, and for
    an input without contents when none are left.
    """
    has_contents = entry.HasField("contents")
    if has_contents and any_raw:
        raise invalid(
            "contents field must not be specified when using raw_input_contents for "
            f"'{entry.name}' for model '{model_name}'"
        )
    if has_contents:
        return contents.raw_of(entry.contents, dtype, entry.name, model_name)
    raw = next(sources, None)
    if raw is None:
        raise invalid(
            f"unable to find data for input tensor '{entry.name}' for model '{model_name}' in "
            "request."
        )
    return raw


def _no_datatype(entry: Input, signature: Signature) -> str:
    spec = signature.inputs.get(entry.name)
    if spec is None:
        return f"unexpected inference input '{entry.name}' for model '{signature.name}'"
    return (
        f"inference input '{entry.name}' data-type is '{entry.datatype}', but model "
        f"'{signature.name}' expects '{spec.dtype.name}'"
    )


# Outputs ----------------------------------------------------------------------------------


def _outputs(
    message: ModelInferRequest, regions: SharedMemoryRegions
) -> tuple[RequestedOutput, ...]:
    wanted: dict[str, RequestedOutput] = {}
    for entry in message.outputs:
        if entry.name in wanted:
            raise labelled(message.id, f"output '{entry.name}' already exists in request")
        class_count, memory = 0, None
        if entry.parameters:
            place = shared_memory.place(entry.parameters, entry.name)
            if "classification" in entry.parameters:
                if place is not None:
                    raise invalid(
                        "output can't set both 'shared_memory_region' and 'classification'"
                    )
                class_count = _class_count(entry.parameters["classification"])
            elif place is not None:
                memory = regions.view(*place)
        wanted[entry.name] = RequestedOutput(entry.name, class_count, memory)
    return tuple(wanted.values())


def _class_count(parameter: InferParameter) -> int:
    if kind(parameter) != "int64_param":
        raise invalid("invalid value type for 'classification' parameter, expected int64_param")
    if parameter.int64_param <= 0:
        raise invalid("invalid value for 'classification' parameter, expected >= 0")
    return parameter.int64_param
