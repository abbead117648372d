"""Model: one model of a server, for requests and questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tritonserver._api._enums import MemoryType, ModelBatchFlag, ModelTxnPropertyFlag
from tritonserver._api._errors import InvalidArgumentError, raised_as_triton
from tritonserver._api._memorybuffer import place_of
from tritonserver._api._request import InferenceRequest
from tritonserver._api._response import AsyncResponseIterator, ResponseIterator

if TYPE_CHECKING:
    from tritonserver_core.embedded import EmbeddedServer

    from tritonserver._api._server import Server


class Model:
    """A model of a server; `Server.model`, `models` and `load` return it. Any thread.

    version   -1 for the newest one that is ready
    state     of the version, from `Server.models`; else None
    reason    of the state
    A model that does not exist is no error before a request or a question about it.
    """

    def __init__(
        self,
        server: Server,
        name: str,
        version: int = -1,
        state: str | None = None,
        reason: str | None = None,
    ) -> None:
        self._server: EmbeddedServer = server._running()
        self.name = name
        self.version = version
        self.state = state
        self.reason = reason

    def create_request(self, **kwargs: Any) -> InferenceRequest:
        """Return a request to this model; the arguments are the fields of InferenceRequest."""
        return InferenceRequest(**{**kwargs, "model": self})

    def infer(
        self,
        inference_request: InferenceRequest | None = None,
        raise_on_error: bool = True,
        **kwargs: Any,
    ) -> ResponseIterator:
        """Send a request; return an iterator over its responses.

        inference_request   None: a request is made of the other arguments, the fields of InferenceRequest
        raise_on_error      whether the iterator raises an error of a response, or returns the response
        Raises the TritonError of a request that the server refuses.
        """
        request = self.create_request(**kwargs) if inference_request is None else inference_request
        responses = ResponseIterator(request, raise_on_error)
        self._send(request, responses)
        return responses

    def async_infer(
        self,
        inference_request: InferenceRequest | None = None,
        raise_on_error: bool = True,
        **kwargs: Any,
    ) -> AsyncResponseIterator:
        """Send a request; return an iterator for `async for`. Arguments and errors are those of `infer`.

        It waits until the server has accepted the request, some tens of microseconds if the server is idle.
        """
        request = self.create_request(**kwargs) if inference_request is None else inference_request
        responses = AsyncResponseIterator(request, raise_on_error)
        self._send(request, responses)
        return responses

    def _send(
        self, request: InferenceRequest, responses: ResponseIterator | AsyncResponseIterator
    ) -> None:
        on_device = _wants_device(request)
        with raised_as_triton():
            responses._call = self._server.send(request._as_core(), responses._inbox, on_device)

    def _answering(self, name: str, version: int) -> Model:
        """Return the model that has answered: this one if it has that version."""
        if name == self.name and version == self.version:
            return self
        found = Model.__new__(Model)
        found._server, found.name, found.version = self._server, name, version
        found.state = found.reason = None
        return found

    def metadata(self) -> dict[str, Any]:
        """Return inputs, outputs, versions and platform. Raises NotFoundError for an unknown model."""
        with raised_as_triton():
            return self._server.metadata(self.name, self.version)

    def ready(self) -> bool:
        """Return whether the model serves; False for an unknown model."""
        return self._server.ready(self.name, self.version)

    def batch_properties(self) -> ModelBatchFlag:
        """Return whether the first dimension of the tensors is the batch."""
        batches = self.config()["max_batch_size"] > 0
        return ModelBatchFlag.FIRST_DIM if batches else ModelBatchFlag.UNKNOWN

    def transaction_properties(self) -> ModelTxnPropertyFlag:
        """Return whether the model gives one response for each request."""
        policy = self.config().get("model_transaction_policy") or {}
        decoupled = bool(policy.get("decoupled"))
        return ModelTxnPropertyFlag.DECOUPLED if decoupled else ModelTxnPropertyFlag.ONE_TO_ONE

    def statistics(self) -> dict[str, Any]:
        """Return counts and times in nanoseconds as {"model_stats": […]}, an entry for each version."""
        with raised_as_triton():
            return {"model_stats": self._server.statistics(self.name, self.version)}

    def config(self, config_version: int = 1) -> dict[str, Any]:
        """Return the complete configuration. Raises InvalidArgumentError for a version of it other than 1."""
        if config_version != 1:
            raise InvalidArgumentError(f"model configuration has version 1, not {config_version}")
        with raised_as_triton():
            return self._server.config(self.name, self.version)

    def __repr__(self) -> str:
        return str({"name": self.name, "version": self.version, "state": self.state})


def _wants_device(request: InferenceRequest) -> bool:
    """Return whether outputs may stay on a GPU. An unknown memory type is an error of the responses."""
    wanted = request.output_memory_type
    if wanted is None or request.requested_outputs:
        return False
    try:
        return place_of(wanted)[0] is MemoryType.GPU
    except InvalidArgumentError:
        return False
