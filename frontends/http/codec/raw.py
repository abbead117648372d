"""A raw binary request: no JSON, the body is the bytes of the model's only input."""

from __future__ import annotations

import math
import struct

from core import dtypes
from core.config import Signature
from core.config.signature import InputSpec
from core.errors import CoreError, invalid
from core.request import InferenceRequest
from core.tensor import Buffer, Tensor


def parse(
    model: str, version: int, signature: Signature, body: memoryview, most_bytes: int
) -> InferenceRequest:
    """Return a request whose data is the whole body, for a model with one input.

    The signature gives name, datatype and shape. The batch size is 1 if the model has batches, and one
    variable dimension follows from the length of the body. core/pipeline/admit.py checks that the elements
    are whole. For an input of BYTES, the body is its only element. Raises CoreError(INVALID) if the body
    exceeds `most_bytes`, the model has other than one input, several dimensions are variable, or an input of
    BYTES has another shape than [1].
    """
    if len(body) > most_bytes:
        raise invalid(
            f"Raw input has a byte_size ({len(body)} bytes) that exceeds the maximum allowed value of "
            f"{most_bytes} bytes. Use --http-max-input-size to increase the limit."
        )
    if len(signature.inputs) != 1:
        raise _refused(
            "Raw request must only have 1 input (found 1) to be deduced but got "
            f"{len(signature.inputs)} inputs in '{model}' model configuration"
        )
    (spec,) = signature.inputs.values()
    if spec.dtype is dtypes.BYTES:
        if spec.dims != (1,):
            raise _refused(
                f"For BYTE datatype raw input '{spec.name}', the model must have input shape [1]"
            )
        # The only copy of a body: the wire form of an element begins with its length.
        data: Buffer = struct.pack("<I", len(body)) + bytes(body)
        dims: tuple[int, ...] = spec.dims
    else:
        data, dims = body, _deduced(spec, len(body))
    batch = (1,) if signature.max_batch_size else ()
    tensor = Tensor(spec.name, spec.dtype, batch + dims, raw=data)
    return InferenceRequest(model, {spec.name: tensor}, model_version=version)


def _deduced(spec: InputSpec, size: int) -> tuple[int, ...]:
    """Return the dimensions of an input; a variable one is as large as `size` bytes allow, rounded down.

    Raises CoreError(INVALID) if several are variable.
    """
    variable = spec.dims.count(-1)
    if variable > 1:
        raise _refused(
            f"The shape of the raw input '{spec.name}' can not be deduced because there are more than "
            "one variable-sized dimension"
        )
    if not variable:
        return spec.dims
    fixed = math.prod(dim for dim in spec.dims if dim != -1) * spec.dtype.byte_size
    length = size // fixed if fixed else 0
    return tuple(length if dim == -1 else dim for dim in spec.dims)


def _refused(text: str) -> CoreError:
    """Return the error for a raw request, which has no id."""
    return invalid(f"[request id: <id_unknown>] {text}")
