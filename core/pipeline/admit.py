"""Admission: checks a request against its model, once.

frontend ─► [admit] ─► queue.  After this check every input is known, complete and of the right datatype,
shape and size; `request.rows` and `request.arrival_ns` are set, and inputs have the shape that the model
sees. The error texts are Triton's, since clients and their tests look for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import cython

from core import dtypes
from core.config.signature import InputSpec, Signature
from core.errors import CoreError, invalid
from core.native import strings
from core.native.arrays import length
from core.native.clock import Clock
from core.pipeline.answers.split import mapped_shape
from core.request import InferenceRequest
from core.similar import did_you_mean
from core.tensor import Tensor

LARGEST = 2**63 - 1  # of an element count or byte size, as in Triton
LARGEST_QUICK = 2**31 - 1  # sizes up to this one cannot overflow when multiplied
_MOST_LISTED = 8  # names in an error text


class Admission:
    """The check of requests for one model version.

    `_is_right` confirms most valid requests without creating an object. All other requests, valid or not, go
    to `_complete`, which makes every check, reshapes inputs and has all error texts.
    """

    def __init__(self, signature: Signature, clock_ns: Callable[[], int] = time.monotonic_ns):
        self.signature = signature
        self._clock = Clock(clock_ns)
        self._required = [spec.name for spec in signature.inputs.values() if not spec.optional]
        self._expected = {
            name: ExpectedInput(spec, signature) for name, spec in signature.inputs.items()
        }
        self._batches = signature.max_batch_size > 0
        # Whether no input is optional, has a `reshape`, or is a shape tensor.
        self._plain = len(self._required) == len(signature.inputs) and not any(
            spec.reshape is not None or spec.shape_tensor for spec in signature.inputs.values()
        )

    def __call__(self, request: InferenceRequest) -> None:
        self.check(request)

    def check(self, request: InferenceRequest) -> None:
        """Set `rows` and `arrival_ns`, replace inputs that have a `reshape`; raise CoreError if invalid."""
        if not self._is_right(request):
            self._complete(request)
        request.arrival_ns = self._clock.now_ns()

    def _is_right(self, request: InferenceRequest) -> bool:
        """Return True and set `rows` if a request is certainly valid; False if `_complete` must check it."""
        inputs = request.inputs
        if not self._plain or len(inputs) != len(self._expected) or not inputs:
            return False
        if request.outputs:
            outputs = self.signature.outputs
            for output in request.outputs:
                if output.name not in outputs:
                    return False
        rows = -1
        for name, tensor in inputs.items():
            expected = self._expected.get(name)
            if expected is None or not expected.fits(tensor):
                return False
            if self._batches:
                first = tensor.shape[0]
                if first != rows and rows != -1:
                    return False
                rows = first
        if self._batches:
            if rows > self.signature.max_batch_size or rows == 0:
                return False
            request.rows = rows
        else:
            request.rows = 1
        return True

    def _complete(self, request: InferenceRequest) -> None:
        signature = self.signature
        try:
            for output in request.outputs:
                if output.name not in signature.outputs:
                    raise _unknown("output", output.name, signature.outputs, signature.name)
            required = self._required
            if not (len(required) <= len(request.inputs) <= len(signature.inputs)) or any(
                name not in request.inputs for name in required
            ):
                raise _wrong_inputs(request, required, signature)
            request.rows = _rows(request, signature)
            for name, tensor in request.inputs.items():
                spec = signature.inputs.get(name)
                if spec is None:
                    raise _unknown("input", name, signature.inputs, signature.name)
                _check(tensor, spec, signature)
                if spec.reshape is not None:
                    request.inputs[name] = _model_shaped(tensor, spec, signature)
        except CoreError as error:
            raise CoreError(error.kind, f"{request_label(request)} {error.message}") from None


class ExpectedInput:
    """Datatype and shape of one input, for the quick check. The batch dimension is -1."""

    def __init__(self, spec: InputSpec, signature: Signature):
        self.dtype = spec.dtype
        self.byte_size = spec.dtype.byte_size
        batched = signature.max_batch_size > 0 and not spec.shape_tensor
        self.dims = (-1, *spec.dims) if batched else tuple(spec.dims)

    @cython.boundscheck(False)  # type: ignore[untyped-decorator]
    @cython.wraparound(False)  # type: ignore[untyped-decorator]
    def fits(self, tensor: Tensor) -> bool:
        """Return True if datatype, shape and size are right; False also if the quick check cannot tell."""
        shape = tensor.shape
        if tensor.dtype is not self.dtype or len(shape) != len(self.dims):
            return False
        count = 1
        for i in range(len(shape)):
            size, dim = shape[i], self.dims[i]
            if size < 0 or (dim != size and dim != -1) or size > LARGEST_QUICK:
                return False
            count *= size
            if count > LARGEST_QUICK:
                return False
        raw = tensor._raw
        if raw is None:
            return True
        if not self.byte_size:
            return strings.count(raw) == (count, 0)
        return length(raw) == count * self.byte_size


def request_label(request: InferenceRequest) -> str:
    """Return "[request id: …]", with which error texts about a request begin."""
    return f"[request id: {request.id or '<id_unknown>'}]"


def _wrong_inputs(
    request: InferenceRequest, required: list[str], signature: Signature
) -> CoreError:
    unknown = [name for name in request.inputs if name not in signature.inputs]
    if unknown and len(required) <= len(request.inputs) <= len(signature.inputs):
        return _unknown("input", unknown[0], signature.inputs, signature.name)
    got = len(request.inputs)
    most = len(signature.inputs)
    if len(required) == most:
        text = f"expected {most} inputs but got {got} inputs for model '{signature.name}'."
    else:
        text = (
            f"expected number of inputs between {len(required)} and {most} but got {got} inputs "
            f"for model '{signature.name}'."
        )
    missing = [name for name in required if name not in request.inputs]
    return invalid(
        f"{text} Got input(s) {_listed(request.inputs)}, but missing required input(s) "
        f"{_listed(missing)}. Please provide all required input(s)."
    )


def _unknown(kind: str, name: str, known: dict[str, Any], model: str) -> CoreError:
    """Return the error for an input or output that the model does not have."""
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    return invalid(
        f"unexpected inference {kind} '{name}' for model '{model}'{did_you_mean(name, known)}; its "
        f"{kind}s: {_listed(list(islice(known, _MOST_LISTED)))}{more}"
    )


def _listed(names: list[str] | dict[str, Tensor]) -> str:
    return "[" + ",".join(f"'{name}'" for name in names) + "]"


def _rows(request: InferenceRequest, signature: Signature) -> int:
    """Return the batch size of the inputs; 1 if none has one. Raise CoreError(INVALID) for a wrong one."""
    if not signature.max_batch_size:
        return 1
    rows = -1
    for name, tensor in request.inputs.items():
        spec = signature.inputs.get(name)
        if spec is not None and spec.shape_tensor:
            continue
        if not tensor.shape:
            raise invalid(
                f"input '{name}' has no shape but model requires batch dimension for "
                f"'{signature.name}'"
            )
        if rows == -1:
            rows = tensor.shape[0]
        elif rows != tensor.shape[0]:
            raise invalid(
                f"input '{name}' batch size does not match other inputs for '{signature.name}'"
            )
    if rows == -1:  # there are only shape tensors, or no inputs
        return 1
    if rows == 0:
        raise _no_rows(request, signature)
    if rows > signature.max_batch_size:
        raise invalid(
            f"inference request batch-size must be <= {signature.max_batch_size} for "
            f"'{signature.name}'"
        )
    return rows


def _no_rows(request: InferenceRequest, signature: Signature) -> CoreError:
    name, tensor = next(
        (name, tensor)
        for name, tensor in request.inputs.items()
        if name not in signature.inputs or not signature.inputs[name].shape_tensor
    )
    return invalid(
        f"inference request batch-size must be >= 1 for '{signature.name}': input '{name}' has shape "
        f"{_shape_text(tensor.shape)}"
    )


def _check(tensor: Tensor, spec: InputSpec, signature: Signature) -> None:
    if tensor.dtype is not spec.dtype:
        raise invalid(
            f"inference input '{spec.name}' data-type is '{tensor.dtype}', but model "
            f"'{signature.name}' expects '{spec.dtype}'"
        )
    shape = tensor.shape
    batched = bool(signature.max_batch_size) and not spec.shape_tensor
    if len(shape) != len(spec.dims) + batched or any(
        dim not in (-1, size) for dim, size in zip(spec.dims, shape[batched:], strict=True)
    ):
        raise _wrong_shape(tensor, spec, signature)
    count = 1
    for size in shape:
        if size < 0:
            raise invalid(
                f"invalid shape for input '{spec.name}': shape {_shape_text(shape)} contains one or "
                "more invalid dimensions"
            )
        count *= size
    if count > LARGEST:
        raise invalid(
            f"invalid shape for input '{spec.name}': shape {_shape_text(shape)} causes total element "
            f"count to exceed maximum size of {LARGEST}"
        )
    if tensor.has_raw:
        _check_size(tensor, count, signature)


def _check_size(tensor: Tensor, count: int, signature: Signature) -> None:
    """Raise CoreError(INVALID) unless the bytes fit the shape; elements of BYTES are counted."""
    name, model = tensor.name, signature.name
    got = memoryview(tensor.raw).nbytes
    if tensor.dtype is not dtypes.BYTES:
        size = tensor.dtype.byte_size
        if count * size > LARGEST:
            raise invalid(
                f"byte size overflow for input '{name}': element count ({count}) * data type size "
                f"({size}) exceeds maximum allowed size ({LARGEST})"
            )
        if count * size != got:
            raise invalid(
                f"input byte size mismatch for input '{name}' for model '{model}'. "
                f"Expected {count * size}, got {got}"
            )
        return
    elements, left = strings.count(tensor.raw)
    if left >= 4:
        raise invalid(
            f"incomplete string data for inference input '{name}' for model '{model}': an element "
            f"announces more bytes than the {left - 4} that are left"
        )
    if left:
        raise invalid(
            f"incomplete string length indicator for inference input '{name}' for model '{model}', "
            f"expecting 4 bytes but only {left} bytes available"
        )
    if elements != count:
        raise invalid(
            f"expected {count} string elements for inference input '{name}' for model '{model}', "
            f"got {elements}"
        )


def _wrong_shape(tensor: Tensor, spec: InputSpec, signature: Signature) -> CoreError:
    text = (
        f"unexpected shape for input '{spec.name}' for model '{signature.name}'. Expected "
        f"{_shape_text(((-1,) if signature.max_batch_size and not spec.shape_tensor else ()) + spec.dims)}, "
        f"got {_shape_text(tensor.shape)}."
    )
    if signature.max_batch_size:
        text += (
            " NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension "
            "to be prepended to each input shape. If you want to specify the full shape including the "
            "batch dim in your input dims config, try setting max_batch_size to zero. See the model "
            "configuration docs for more info on max_batch_size."
        )
    return invalid(text)


def _shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"


def _model_shaped(tensor: Tensor, spec: InputSpec, signature: Signature) -> Tensor:
    """Return an input that has a `reshape` in the configuration, in the shape that the model sees."""
    assert spec.reshape is not None
    batch = tensor.shape[:1] if signature.max_batch_size else ()
    shape = batch + mapped_shape(tensor.shape[len(batch) :], spec.dims, spec.reshape)
    return tensor.reshaped(shape)
