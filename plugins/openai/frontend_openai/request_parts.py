"""Parts of a request to a text model: the shape and elements of an input, and a copy over the same bytes."""

from __future__ import annotations

import struct

from core.config import InputSpec
from core.request import InferenceRequest


def shape_of(spec: InputSpec, count: int) -> tuple[int, ...]:
    """Return the shape of `count` values; the last open dimension takes them all."""
    open_dims = [at for at, size in enumerate(spec.dims) if size < 0]
    if not open_dims:
        return spec.dims
    return tuple(
        size if size >= 0 else (count if at == open_dims[-1] else 1)
        for at, size in enumerate(spec.dims)
    )


def copy_of(request: InferenceRequest) -> InferenceRequest:
    """Return a request with tensors and parameters of its own over the same bytes."""
    inputs = {name: tensor.renamed(name) for name, tensor in request.inputs.items()}
    return InferenceRequest(
        request.model_name,
        inputs,
        model_version=request.model_version,
        parameters=dict(request.parameters) if request.has_parameters else None,
        priority=request.priority,
    )


def element(value: bytes | str) -> bytes:
    """Return the wire form of an element of BYTES."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data
