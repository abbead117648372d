"""split: divides the outputs of a batch among its requests.

execute ─► [split] ─► InferenceResponse.  The tensors of a request are views of the batch's outputs. An
output is copied here only into memory that the client has named, or from a device to host memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cython

from core.batch import Batch
from core.config.signature import OutputSpec, Signature
from core.dtypes import BF16, BYTES, DataType
from core.errors import CoreError, internal
from core.native.arrays import has_dtype, shape_of
from core.pipeline.answers.classification import classify
from core.pipeline.answers.placement import place
from core.request import DeviceOutput, InferenceRequest, RequestedOutput
from core.tensor import DeviceTensor, Tensor, new_tensor


def split(outputs: Mapping[str, Any], batch: Batch) -> list[list[Tensor]]:
    """Return a list of tensors for each request of a batch.

    outputs   name → array with the rows of all requests, in their order
    Raise what `whole_tensors` raises.
    """
    requests = batch.requests
    found: list[list[Tensor]] = [[] for _ in requests]
    for whole in whole_tensors(outputs, batch):
        if type(whole) is not Tensor:
            _split_on_device(whole, requests, found)
            continue
        array = whole._as_array()
        rest = whole.shape[1:]
        row = 0
        for i in range(len(requests)):
            request = requests[i]
            tensors = found[i]
            end = row + request.rows
            part = array[row:end]
            shape = (request.rows, *rest)
            tensors.append(new_tensor(whole.name, whole.dtype, shape, None, part))
            row = end
    return found


def _split_on_device(
    whole: Tensor, requests: list[InferenceRequest], found: list[list[Tensor]]
) -> None:
    """Append each request's rows of `whole` to its tensors in `found`. The rows stay on the device."""
    assert isinstance(whole, DeviceTensor)
    row = 0
    for request, tensors in zip(requests, found, strict=True):
        tensors.append(whole.rows(row, request.rows))
        row += request.rows


def whole_tensors(outputs: Mapping[str, Any], batch: Batch) -> list[Tensor]:
    """Return the outputs of an execution as tensors with the rows of all requests.

    outputs   name → array with the rows of all requests, in their order
    Raise CoreError: INTERNAL if a name, a datatype or a row count does not fit the configuration, INVALID if
    the protocol does not have the datatype.
    """
    signature = batch.signature
    found = []
    for name, value in outputs.items():
        whole = _whole(name, value, signature)
        if signature.max_batch_size and (not whole.shape or whole.shape[0] != batch.rows):
            raise _wrong_rows(whole, batch.rows, signature)
        found.append(whole)
    return found


def _whole(name: str, value: Any, signature: Signature) -> Tensor:
    """Return one output as a tensor with all rows. Raise for name and datatype as `whole_tensors` does."""
    spec = signature.outputs.get(name)
    dtype = spec.dtype if spec is not None else _state_dtype(signature, name)
    if has_dtype(value, dtype.numpy) and dtype is not BYTES:
        return new_tensor(name, dtype, shape_of(value), None, value)
    whole = Tensor.of(name, value, dtype if dtype is BF16 else None)
    if whole.dtype is not dtype:
        raise _wrong_dtype(whole, dtype, signature)
    return whole


@cython.boundscheck(False)  # type: ignore[untyped-decorator]
@cython.wraparound(False)  # type: ignore[untyped-decorator]
def tensors_fit(
    tensors: list[Tensor],
    request: InferenceRequest,
    signature: Signature,
    specs: tuple[OutputSpec, ...] = (),
) -> bool:
    """Return whether the tensors that a model has returned for one request fit its configuration.

    specs   the signature's outputs in their order; the check is slower without them

    An output may be missing; the response then lacks it. The first dimension of a decoupled model's output
    may have any size, since one request may get a response for each of its rows. States of a sequence are not
    checked here.
    """
    first = 1 if signature.max_batch_size else 0
    rows = -1 if signature.decoupled else request.rows
    place = 0
    for tensor in tensors:
        # Models mostly return their outputs in the order of the configuration, with the same name objects.
        spec = specs[place] if place < len(specs) else None
        place += 1
        if spec is None or spec.name is not tensor.name:
            spec = signature.outputs.get(tensor.name)
            if spec is None:
                if tensor.name in signature.states:
                    continue
                return False
        if tensor.dtype is not spec.dtype:
            return False
        shape = tensor.shape
        dims = spec.dims if spec.reshape is None else spec.reshape
        if len(shape) != len(dims) + first:
            return False
        if first and rows != -1:
            size = shape[0]
            if size != rows:
                return False
        for i in range(len(dims)):
            # Equal small integers are one object, so most dimensions need no comparison of values.
            if dims[i] is not shape[first + i]:
                dim = dims[i]
                size = shape[first + i]
                if dim != -1 and dim != size:
                    return False
    return True


def plain(tensors: list[Tensor]) -> bool:
    """Return whether all tensors are in host memory."""
    for tensor in tensors:  # noqa: SIM110  a generator is slow here
        if type(tensor) is not Tensor:
            return False
    return True


def misfit(tensors: list[Tensor], request: InferenceRequest, signature: Signature) -> CoreError:
    """Return a CoreError(INTERNAL) about the first tensor that does not fit. Raise ValueError if all fit."""
    for tensor in tensors:
        if tensors_fit([tensor], request, signature):
            continue
        spec = signature.outputs.get(tensor.name)
        if spec is None:
            return _unexpected(signature, tensor.name)
        if tensor.dtype is not spec.dtype:
            return _wrong_dtype(tensor, spec.dtype, signature)
        shape = tensor.shape
        batches = signature.max_batch_size > 0 and not signature.decoupled
        if batches and (not shape or shape[0] != request.rows):
            return _wrong_rows(tensor, request.rows, signature)
        dims = spec.dims if spec.reshape is None else spec.reshape
        return _wrong_shape(tensor, dims, signature)
    raise ValueError("every tensor fits")


def _wrong_dtype(found: Tensor, expected: DataType, signature: Signature) -> CoreError:
    return internal(
        f"model '{signature.name}' gave output '{found.name}' as {found.dtype}, "
        f"its configuration says {expected}"
    )


def _wrong_rows(found: Tensor, rows: int, signature: Signature) -> CoreError:
    return internal(
        f"model '{signature.name}' gave output '{found.name}' with shape {list(found.shape)} for a "
        f"batch of {rows} rows: the first dimension must be {rows}"
    )


def _wrong_shape(found: Tensor, dims: tuple[int, ...], signature: Signature) -> CoreError:
    expected = ", ".join(["rows"] * (signature.max_batch_size > 0) + [str(dim) for dim in dims])
    return internal(
        f"model '{signature.name}' gave output '{found.name}' with shape {list(found.shape)}, "
        f"its configuration says [{expected}]"
    )


def named_tensors(outputs: Mapping[str, Any] | list[Tensor]) -> list[Tensor]:
    """Return the outputs of one request as tensors."""
    if type(outputs) is not list and isinstance(outputs, Mapping):
        return [Tensor.of(name, value) for name, value in outputs.items()]
    return outputs


def wanted_tensors(
    tensors: list[Tensor], request: InferenceRequest, signature: Signature
) -> list[Tensor]:
    """Return the tensors of one request that its client wants, reshaped and classified.

    Copy an output into memory that the request names, unless it is cancelled. Copy tensors on a device to
    host memory, on the responding thread, unless the request lets them stay.
    Raise CoreError(INTERNAL) if the configuration lacks an output, or if an output is larger than its memory
    or cannot be copied. Raise CoreError(INVALID) if an output cannot be classified.
    """
    if not request.outputs and _plain(tensors, signature):
        return tensors
    found = []
    for tensor in tensors:
        spec = _spec(signature, tensor.name)
        class_count, memory = 0, None
        wanted = None
        if request.outputs:
            wanted = _wanted(request, tensor.name)
            if wanted is None:
                continue
            class_count, memory = wanted.class_count, wanted.memory
        if spec.reshape is not None:
            tensor = tensor.reshaped(_client_shape(tensor.shape, spec, signature))
        if class_count:
            tensor = classify(tensor, class_count, spec.labels or (), signature.max_batch_size > 0)
        # After a cancellation, the client may use its memory for something else.
        if memory is not None and not request.cancelled:
            place(tensor, memory)
        if type(tensor) is not Tensor:
            tensor = _on_host_if_wanted(tensor, wanted)
        found.append(tensor)
    return found


def _plain(tensors: list[Tensor], signature: Signature) -> bool:
    """Return whether a client that wants all outputs gets these tensors unchanged."""
    for tensor in tensors:
        spec = _spec(signature, tensor.name)
        if spec.reshape is not None or type(tensor) is not Tensor:
            return False
    return True


def _on_host_if_wanted(tensor: Tensor, wanted: RequestedOutput | None) -> Tensor:
    """Return a copy in host memory, or the tensor itself if it may stay on the device or `place` copied it.

    A tensor that may stay also gets a copy in its `memory` if `wanted.host` is set. Raise CoreError(INTERNAL)
    if a copy fails.
    """
    assert isinstance(tensor, DeviceTensor)
    if wanted is not None and wanted.memory is not None:
        return tensor  # `place` has copied it
    if not isinstance(wanted, DeviceOutput):
        return tensor.on_host()
    if wanted.host:
        tensor.memory.host(tensor.name)
    return tensor


def _wanted(request: InferenceRequest, name: str) -> RequestedOutput | None:
    for output in request.outputs:
        if output.name == name:
            return output
    return None


def _spec(signature: Signature, name: str) -> OutputSpec:
    if (spec := signature.outputs.get(name)) is None:
        raise _unexpected(signature, name)
    return spec


def _unexpected(signature: Signature, name: str) -> CoreError:
    return internal(
        f"unexpected inference output '{name}' for model '{signature.name}'; "
        f"its configuration has {sorted(signature.outputs)}"
    )


def _state_dtype(signature: Signature, name: str) -> DataType:
    """Return the datatype of the state or output `name`. Raise CoreError(INTERNAL) if there is neither."""
    if (state := signature.states.get(name)) is None:
        return _spec(signature, name).dtype
    return state.dtype


def without_states(tensors: list[Tensor], signature: Signature) -> list[Tensor]:
    """Return the tensors of one request without those that only renew a state of its sequence."""
    states, outputs = signature.states, signature.outputs
    return [each for each in tensors if each.name in outputs or each.name not in states]


def _client_shape(
    shape: tuple[int, ...], spec: OutputSpec, signature: Signature
) -> tuple[int, ...]:
    assert spec.reshape is not None
    batch = shape[:1] if signature.max_batch_size else ()
    return batch + mapped_shape(shape[len(batch) :], spec.reshape, spec.dims)


def mapped_shape(
    shape: tuple[int, ...], pattern: tuple[int, ...], onto: tuple[int, ...]
) -> tuple[int, ...]:
    """Return `shape`, which matches `pattern`, in the form `onto`: the n-th -1 keeps its size.

    Both come from a `reshape` in config.pbtxt; validation ensures that both have the same number of -1.
    """
    variable = iter([size for size, dim in zip(shape, pattern, strict=False) if dim == -1])
    return tuple(next(variable, 1) if dim == -1 else dim for dim in onto)
