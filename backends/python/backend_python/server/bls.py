"""Calls of other models (BLS) on the server's side, for calling models in any process.

model ─► api.Host.infer ─► [begin] ─► Server.infer_step ─► Reply ─► back.

Not thread-safe: call from the event loop only.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from core.errors import CoreError, DeadlineExceeded, cancelled, invalid, unsupported
from core.request import InferenceRequest, repeated_input
from core.response import InferenceResponse, Reply
from core.tensor import Tensor


def by_name(tensors: Iterable[Tensor]) -> dict[str, Tensor]:
    """Return the inputs of a model's request by name. Raise CoreError if two have the same name."""
    inputs: dict[str, Tensor] = {}
    for tensor in tensors:
        if tensor.name in inputs:
            raise invalid(repeated_input(tensor.name))
        inputs[tensor.name] = tensor
    return inputs


def begin(
    server: Any,
    request: InferenceRequest,
    decoupled: bool,
    outer: Sequence[InferenceRequest] = (),
) -> Reply:
    """Pass the request of a model to another model, and return the Reply that carries the answers.

    Raise CoreError, with Triton's message, if the model cannot serve, is decoupled while `decoupled` is
    False, or refuses the request. Raise CoreError also if all of `outer` are cancelled.

    outer   the requests that the calling model executes, if they are known. When the last of them is
            cancelled, the call is cancelled too, and its Reply ends with an error at once
    """
    waiting = [each for each in outer if not each.over]
    if outer and not waiting and any(each.cancelled for each in outer):
        raise _nobody_waits(outer)
    if waiting and all(each.deadline_ns for each in waiting):
        request.deadline_ns = max(each.deadline_ns for each in waiting)
    name = request.model_name
    try:
        # This does not check that its instances are ready: they may restart soon, and the call waits.
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
    return _Bound(reply, waiting).reply if waiting else reply


class _Bound:
    """A link between the reply of a call and the calling model. It ends the call with that model's requests.

    Invariant: `reply` gets one final item: the called model's, or an error when all outer requests end.
    """

    def __init__(self, inner: Reply, outer: list[InferenceRequest]):
        self.reply = Reply(inner.request)
        self._inner = inner
        self._outer = outer
        for each in outer:
            each.on_cancel(self._cancelled)
        inner.listen(self._arrived)

    def _arrived(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        if not self._outer:  # the call was cancelled: this is the called model's answer to that
            return
        if final:
            self._part()
        self.reply.send(item, final)

    def _cancelled(self) -> None:
        if all(each.over for each in self._outer):
            error = _nobody_waits(self._outer)
            self._part()
            self._inner.cancel()
            self.reply.fail(error)

    def _part(self) -> None:
        """Unregister from the outer requests: a long request may make any number of calls."""
        outer, self._outer = self._outer, []
        for each in outer:
            each.off_cancel(self._cancelled)


def _nobody_waits(outer: Sequence[InferenceRequest]) -> CoreError:
    """Return the error of a call whose outer requests are all cancelled."""
    last_ns = max(each.deadline_ns for each in outer)
    if last_ns and last_ns <= time.monotonic_ns():
        return DeadlineExceeded()
    return cancelled("the request that this call belongs to was cancelled")
