"""Calls of other models (BLS), as the server sees them, wherever the calling model runs.

model ─► api.Host.infer ─► [begin] ─► Server.infer_step ─► Reply ─► back.  Loop thread only.
"""

from __future__ import annotations

from typing import Any

from core.errors import CoreError, invalid, unsupported
from core.request import InferenceRequest, RequestedOutput
from core.response import Reply
from core.tensor import Tensor


def request_of(
    tensors: list[Tensor],
    *,
    model: str,
    version: int,
    request_id: str,
    correlation_id: int | str,
    flags: int,
    timeout_us: int,
    parameters: dict[str, Any],
    outputs: list[str],
    trace: Any,
) -> InferenceRequest:
    """The request of a model to another; `outputs` empty for all.

    trace   that of the request which the call belongs to, or None
    CoreError if two tensors have one name.
    """
    inputs = {tensor.name: tensor for tensor in tensors}
    if len(inputs) < len(tensors):
        twice = next(name for name in inputs if sum(t.name == name for t in tensors) > 1)
        raise invalid(f"input '{twice}' already exists in request")
    return InferenceRequest(
        model,
        inputs,
        model_version=version,
        id=request_id,
        outputs=tuple(RequestedOutput(name) for name in outputs),
        parameters=parameters,
        correlation_id=correlation_id,
        flags=flags,
        timeout_us=timeout_us,
        trace=trace,
    )


def begin(server: Any, request: InferenceRequest, decoupled: bool) -> Reply:
    """Hand the request of a model to another model, whose answers come through the Reply.

    CoreError, in Triton's words, if the model cannot serve, is a decoupled one and `decoupled` is
    False, or refuses the request.
    """
    name = request.model_name
    try:
        # Not whether its instances are ready: they may be back soon, and the call waits as others do.
        signature = server.signature(name, request.model_version)
    except CoreError as error:
        not_ready = f"Failed for execute the inference request. Model '{name}' is not ready."
        raise CoreError(error.kind, not_ready) from None
    if signature.decoupled and not decoupled:
        raise unsupported(
            f"Model '{name}' is using the decoupled. The current BLS request call doesn't support "
            "models using the decoupled transaction policy. Please use 'decoupled=True' argument to "
            "the 'exec' or 'async_exec' calls for decoupled models.'"
        )
    reply: Reply = server.infer_step(request)  # it is traced if the request it belongs to is
    return reply
