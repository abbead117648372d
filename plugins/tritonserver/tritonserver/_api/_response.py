"""InferenceResponse, and the iterators over the responses to one request.

Reply ─► loop thread ─► Inbox ─► [ResponseIterator, AsyncResponseIterator] ─► InferenceResponse
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tritonserver_core.calls import AsyncInbox, Call, Item, ThreadInbox

from core.errors import CoreError
from tritonserver._api._allocators import default_memory_allocators, placed
from tritonserver._api._enums import MemoryType
from tritonserver._api._errors import InternalError, InvalidArgumentError, TritonError, triton_error
from tritonserver._api._memorybuffer import place_of
from tritonserver._api._request import InferenceRequest
from tritonserver._api._tensor import Tensor, output_tensor

if TYPE_CHECKING:
    from tritonserver._api._model import Model


@dataclass
class InferenceResponse:
    """A response of a model.

    model        with the version that has answered
    error        the error instead of outputs; or None
    classification_label   always None: labels are elements of an output (`requested_outputs`)
    final        whether no response follows. The final response of a decoupled model may have no outputs
    """

    model: Model
    request_id: str | None = None
    parameters: dict[str, str | int | bool | float] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    error: TritonError | None = None
    classification_label: str | None = None
    final: bool = False


class _Iterator:
    """The base of both iterators. Deleting it drops further responses, unless a queue gets them."""

    def __init__(self, request: InferenceRequest, raise_on_error: bool):
        self._request = request
        self._raise_on_error = raise_on_error
        self._complete = False
        self._call: Call | None = None

    def cancel(self) -> None:
        """Cancel the request; no effect if it has ended. A model that runs already may finish it."""
        if self._call is not None:
            self._call.cancel()

    def _received(self, response: InferenceResponse) -> InferenceResponse:
        self._complete = response.final
        if response.error is not None and self._raise_on_error:
            raise response.error
        return response

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, TypeError):  # at the end of the interpreter
            if self._call is None or self._complete or self._request.response_queue is not None:
                return  # the queue of the program still gets the responses
            self._call.forget()


class ResponseIterator(_Iterator):
    """The responses to one request: `for response in model.infer(…)`. Use it on one thread at a time."""

    def __init__(self, request: InferenceRequest, raise_on_error: bool):
        super().__init__(request, raise_on_error)
        user = request.response_queue
        self._inbox = ThreadInbox(_maker(request), None if user is None else user.put_nowait)

    def __iter__(self) -> ResponseIterator:
        return self

    def __next__(self) -> InferenceResponse:
        """Return the next response; wait for it. Raises its error with `raise_on_error`."""
        if self._complete:
            raise StopIteration
        return self._received(self._inbox.get())


class AsyncResponseIterator(_Iterator):
    """The responses to one request: `async for response in model.async_infer(…)`, on any event loop."""

    def __init__(self, request: InferenceRequest, raise_on_error: bool):
        super().__init__(request, raise_on_error)
        user = request.response_queue
        self._inbox = AsyncInbox(_maker(request), None if user is None else user.put_nowait)

    def __aiter__(self) -> AsyncResponseIterator:
        return self

    async def __anext__(self) -> InferenceResponse:
        """Return the next response. Raises its error with `raise_on_error`."""
        if self._complete:
            raise StopAsyncIteration
        return self._received(await self._inbox.get())


def _maker(request: InferenceRequest) -> Callable[[Item, bool], InferenceResponse]:
    """Return a function that makes the response of an item, and of whether it is the last one."""

    def make(item: Item, final: bool) -> InferenceResponse:
        return _response(request, item, final)

    return make


def _response(request: InferenceRequest, item: Item, final: bool) -> InferenceResponse:
    result = InferenceResponse(request.model, request.request_id, final=final)
    if item is None:
        return result
    if isinstance(item, CoreError):
        return _failed(result, triton_error(item))
    result.model = request.model._answering(item.model_name, item.model_version)
    result.request_id = item.id
    result.parameters = dict(item.parameters)
    try:
        result.outputs = {each.name: output_tensor(each) for each in item.outputs}
        _place(request, result.outputs)
    except TritonError as error:
        return _failed(result, error)
    except Exception as error:  # of the program's allocator
        return _failed(result, InternalError(f"{type(error).__name__}: {error}"))
    return result


def _failed(result: InferenceResponse, error: TritonError) -> InferenceResponse:
    error.args += (result,)
    result.error = error
    return result


def _place(request: InferenceRequest, outputs: dict[str, Tensor]) -> None:
    """Move the outputs to where the request wants them. Raises InvalidArgumentError if that is impossible."""
    wanted, allocator = request.output_memory_type, request.output_memory_allocator
    if wanted is None and allocator is None:
        return
    place = (MemoryType.CPU, 0) if wanted is None else place_of(wanted)
    for name, tensor in outputs.items():
        if allocator is not None:
            outputs[name] = placed(name, tensor, place, allocator)
        elif (own := default_memory_allocators.get(place[0])) is not _DEFAULTS.get(place[0]):
            if own is None:
                raise InvalidArgumentError(f"no allocator gives memory of type {place[0].name}")
            outputs[name] = placed(name, tensor, place, own)
        else:
            outputs[name] = tensor.to_device(place)


_DEFAULTS = dict(default_memory_allocators)

__all__ = ["AsyncResponseIterator", "InferenceResponse", "ResponseIterator"]
