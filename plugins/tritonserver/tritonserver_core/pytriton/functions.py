"""Inference functions as models of core.

Triton.bind ─► [bound_model] ─► BoundFunction ─► instance ─► requests ─► function ─► responses
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from google.protobuf import text_format

from core.backend import ModelInstance
from core.batch import Batch
from core.config import ModelConfig as Message
from core.errors import internal
from frontends.in_process.functions.backend import FunctionModel
from frontends.in_process.functions.binding import BoundFunction, FunctionSettings, bound_function
from frontends.in_process.pending import current_dispatcher
from tritonserver_core.pytriton.context import serving
from tritonserver_core.pytriton.exceptions import PyTritonUnrecoverableError
from tritonserver_core.pytriton.model_config import BoundConfig
from tritonserver_core.pytriton.request import Request, request_of
from tritonserver_core.pytriton.warmup import warmup_requests

PLAIN, ASYNC = "pytriton", "pytriton_async"  # names of the two backends

_TEXT = (bytes, object, np.bytes_, np.object_, np.str_, str)


class Handler:
    """One inference function, with what its instance needs.

    ended   called with the error when the function cannot serve any more
    """

    def __init__(
        self,
        function: Callable[..., Any],
        config: BoundConfig,
        strict: bool,
        ended: Callable[[Exception], None],
    ):
        self._function = function
        self.config = config
        self._strict = strict
        self._ended = ended
        self._outputs = {each.name: each for each in config.outputs}

    def __call__(self, *requests: Request) -> Any:
        """Call the function with a list of requests. A function that yields returns an iterator."""
        return self._function(list(requests))

    def failure(self, error: Exception) -> Exception:
        """Return the error for the callers; end the server for a PyTritonUnrecoverableError."""
        if isinstance(error, PyTritonUnrecoverableError):
            self._ended(error)
        found = internal(
            f"model '{self.config.model_name}' failed: {type(error).__name__}: {error}"
        )
        found.__cause__ = error
        return found

    def checked(self, responses: Any, count: int) -> Sequence[Mapping[str, Any] | None]:
        """Return the responses of a function to `count` requests. Raises ValueError for another form."""
        if not isinstance(responses, list | tuple):
            raise ValueError(
                f"the function returned a {type(responses).__name__}; expected a list with a dict for each "
                "request"
            )
        if len(responses) != count:
            raise ValueError(
                f"the function returned {len(responses)} responses to {count} requests"
            )
        for each in responses:
            if each is None and self.config.decoupled:
                continue
            if not isinstance(each, Mapping):
                raise ValueError(
                    f"a response is a {type(each).__name__}; expected a dict of arrays"
                )
            for name, value in each.items():
                self._check(name, value)
        return responses

    def _check(self, name: Any, value: Any) -> None:
        if not isinstance(name, str) or not isinstance(value, np.ndarray):
            raise ValueError(f"output {name!r} is a {type(value).__name__}; expected a numpy array")
        if not self._strict:
            return
        if (spec := self._outputs.get(name)) is None:
            raise ValueError(f"output '{name}' is none of {list(self._outputs)}")
        text = value.dtype.kind in "OSU"
        if text != (spec.dtype in _TEXT) or not (text or np.issubdtype(value.dtype, spec.dtype)):
            raise ValueError(f"output '{name}' has datatype {value.dtype}, expected {spec.dtype}")
        shape = value.shape[1:] if self.config.batching else value.shape
        if len(shape) != len(spec.shape) or any(
            size not in (-1, found) for size, found in zip(spec.shape, shape, strict=True)
        ):
            raise ValueError(
                f"output '{name}' has shape {list(shape)}, expected {list(spec.shape)}"
            )


class _FunctionInstance(ModelInstance):
    model: FunctionModel
    _handler: Handler

    def open(self) -> None:
        found: Any = self.model.next_function()
        self._handler = found

    def _respond(self, batch: Batch, responses: Any) -> None:
        final = not self._handler.config.decoupled
        for i, each in enumerate(self._handler.checked(responses, len(batch))):
            if each is not None:
                batch.respond(i, each, final=final)

    def _finish(self, batch: Batch) -> None:
        if self._handler.config.decoupled:
            for i in range(len(batch)):
                batch.finish(i)


class PlainFunctionInstance(_FunctionInstance):
    """An instance of a plain function or a generator, on its own thread."""

    def open(self) -> None:
        """Send the warmup requests; what the function raises fails the load."""
        super().open()
        with serving(self._handler.config):
            for request in warmup_requests(self._handler.config):
                found = self._handler(request)
                for _ in found if inspect.isgenerator(found) else ():
                    pass

    def execute(self, batch: Batch) -> None:
        current_dispatcher.set(self.model.backend.dispatcher)
        try:
            with serving(self._handler.config):
                for responses in self._results([request_of(each) for each in batch.requests]):
                    self._respond(batch, responses)
                self._finish(batch)
        except Exception as error:
            raise self._handler.failure(error) from error

    def _results(self, requests: list[Request]) -> Iterator[Any]:
        """Yield what the function yields, or its only result."""
        found = self._handler(*requests)
        if not inspect.isgenerator(found):
            yield found
            return
        yield from found


class AsyncFunctionInstance(_FunctionInstance):
    """An instance of a coroutine function or an async generator, on the server's event loop."""

    async def execute(self, batch: Batch) -> None:  # type: ignore[override]
        try:
            with serving(self._handler.config):
                async for responses in self._results([request_of(each) for each in batch.requests]):
                    self._respond(batch, responses)
                self._finish(batch)
        except Exception as error:
            raise self._handler.failure(error) from error

    async def _results(self, requests: list[Request]) -> AsyncIterator[Any]:
        found = self._handler(*requests)
        if inspect.isawaitable(found):
            found = await found
        if not hasattr(found, "__aiter__"):
            yield found
            return
        async for each in found:
            yield each


def bound_model(handlers: Sequence[Handler], is_async: bool) -> BoundFunction:
    """Return the model of functions with one configuration, each for one instance.

    Raises CoreError(INVALID) for tensors that no model can have.
    """
    bound = handlers[0].config
    config, batcher = bound.config, bound.config.batcher
    more: dict[str, Any] = {"model_transaction_policy": {"decoupled": config.decoupled}}
    if config.response_cache:
        more["response_cache"] = {"enable": True}
    if config.batching and batcher is not None:
        more["dynamic_batching"] = batcher.as_json()
    settings = FunctionSettings(
        inputs=bound.inputs,
        outputs=bound.outputs,
        example=None,
        batching=config.batching,
        max_batch_size=config.max_batch_size if config.batching else None,
        max_queue_delay_microseconds=0,
        preferred_batch_size=(),
        instances=1,
        placement="inline" if is_async else "thread",
        requests=False,
        config=more,
        memory="host",
    )
    found = bound_function(bound.model_name, list(handlers), settings)
    message = Message()
    text_format.Parse(found.config_text, message)
    message.backend = ASYNC if is_async else PLAIN
    if batcher is None:
        message.ClearField("dynamic_batching")
    return replace(found, config_text=text_format.MessageToString(message))


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a function, or the method of a callable object, is a coroutine or async generator."""
    call = getattr(function, "__call__", None)  # noqa: B004  the method of an object
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        for each in (function, inspect.unwrap(function), call)
    )
