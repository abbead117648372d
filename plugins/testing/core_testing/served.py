"""Served: a server on its own thread, with methods that send requests, for tests without coroutines.

test ─► [Served] ─► InferenceServer ─► pipeline ─► the backend under test.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from core import dtypes
from core.config import ModelConfig
from core.errors import CoreError
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest, RequestedOutput
from core.response import InferenceResponse, Reply
from core.server import InferenceServer
from core.tensor import Tensor
from core_testing.example import MODEL, Arrays
from core_testing.patience import PATIENCE_S
from core_testing.server_thread import ServerThread

T = TypeVar("T")


class Served(ServerThread):
    """A server with the models of one folder. Call its methods from one thread at a time.

    No model is loaded until `load`.

    backend      serves every model and overrides the configurations; None for the installed backends
    repository   folder with the models' folders
    options      options of the server, named with underscores

    A method that gets no result in time raises AssertionError.
    """

    def load(self, name: str = MODEL) -> None:
        """Load a model. Raises CoreError if it does not load."""
        self._call(self._server.models.load(name))

    def load_together(self, names: Sequence[str]) -> None:
        """Start the loads of several models at the same moment.

        Raises AssertionError with the number of models that do not load and the first error.
        """

        async def act() -> list[BaseException | None]:
            loads = map(self._server.models.load, names)
            return list(await asyncio.gather(*loads, return_exceptions=True))

        refused = [each for each in self._call(act(), 4 * PATIENCE_S) if each is not None]
        if refused:
            raise AssertionError(
                f"{len(refused)} of {len(names)} models that load at the same time cannot be loaded; "
                f"the first: {refused[0]}"
            ) from refused[0]

    def unload(self, name: str = MODEL) -> None:
        """Unload a model and wait until its versions are UNAVAILABLE."""

        async def act() -> None:
            versions = [each for each in self._server.models.versions() if each.name == name]
            await self._server.models.unload(name)
            while any(each.state != "UNAVAILABLE" for each in versions):
                await asyncio.sleep(0.001)

        self._call(act())

    def config(self, name: str = MODEL) -> ModelConfig:
        """Return the configuration of the loaded model."""
        return self._on_loop(lambda: self._server.models.config(name))

    def statistics(self, name: str = MODEL) -> dict[str, Any]:
        """Return the statistics of the model's first version, as clients get them."""
        return self._on_loop(lambda: self._server.control.health.statistics_here(name))[0]

    def executions(self, name: str = MODEL) -> int:
        """Return the number of completed executions. A stream completes after its last answer."""
        return int(self.statistics(name)["execution_count"])

    def answer(self, inputs: Arrays, name: str = MODEL) -> Arrays | CoreError:
        """Send one request and return its answer or error."""
        return self.together([inputs], name=name)[0]

    def ask(self, inputs: Arrays, outputs: Sequence[str] = (), name: str = MODEL) -> Arrays:
        """Send one request and return its answer. Raises CoreError if the request fails."""
        answer = self.together([inputs], outputs, name)[0]
        if isinstance(answer, CoreError):
            raise answer
        return answer

    def together(
        self, many: Sequence[Arrays], outputs: Sequence[str] = (), name: str = MODEL
    ) -> list[Arrays | CoreError]:
        """Send requests at the same moment: they can share a batch. Return their answers or errors."""
        return self.send([request_of(inputs, outputs, name) for inputs in many])

    def send(self, requests: Sequence[InferenceRequest]) -> list[Arrays | CoreError]:
        """Send the test's own requests at the same moment. Return their answers or errors."""

        async def act() -> list[Arrays | CoreError]:
            return list(await asyncio.gather(*map(_answer, map(self._handed_in, requests))))

        return self._call(act())

    def in_sequence(
        self, many: Sequence[Arrays], correlation_id: int, name: str = MODEL
    ) -> list[Arrays | CoreError]:
        """Send the requests of one sequence, from its start to its end. Return their answers or errors."""
        return self.in_sequences(many, [correlation_id], name)[0]

    def in_sequences(
        self, many: Sequence[Arrays], correlation_ids: Sequence[int], name: str = MODEL
    ) -> list[list[Arrays | CoreError]]:
        """Send equal requests in several sequences at the same moment.

        many   the requests of each sequence; the first request of every sequence is sent before the second
        Return the answers or errors of each sequence, in the order of `correlation_ids`.
        """
        requests = []
        for step, inputs in enumerate(many):
            flags = SEQUENCE_START * (step == 0) | SEQUENCE_END * (step == len(many) - 1)
            for number in correlation_ids:
                request = request_of(inputs, (), name)
                request.correlation_id = number
                request.flags = flags
                requests.append(request)
        answers = self.send(requests)
        return [answers[i :: len(correlation_ids)] for i in range(len(correlation_ids))]

    def stream(self, inputs: Arrays, name: str = MODEL) -> list[Arrays]:
        """Send one request to a decoupled model. Return all answers. Raises CoreError if one is an error."""
        return self.streams([inputs], name)[0]

    def streams(self, many: Sequence[Arrays], name: str = MODEL) -> list[list[Arrays]]:
        """Send requests to a decoupled model at the same moment. Return all answers to each.

        Raises CoreError if one answer is an error.
        """

        async def collect() -> list[list[Arrays]]:
            replies = [self._handed_in(request_of(inputs, (), name)) for inputs in many]
            return list(await asyncio.gather(*map(_stream, replies)))

        return self._call(collect())

    def while_asking(
        self, many: Sequence[Arrays], meanwhile: Callable[[InferenceServer], Any]
    ) -> list[Any]:
        """Send requests, then call `meanwhile(server)` on the event loop. Return the answers or errors.

        If `meanwhile` returns a coroutine, it runs while the requests run, and is awaited, too.
        """

        async def act() -> list[Any]:
            replies = [self._handed_in(request_of(inputs, (), MODEL)) for inputs in many]
            also = meanwhile(self._server)
            task = asyncio.ensure_future(also) if asyncio.iscoroutine(also) else None
            answers = list(await asyncio.gather(*map(_answer, replies)))
            if task is not None:
                await task
            return answers

        return self._call(act())

    def cancelled_when(
        self, begun: threading.Event, many: Sequence[Arrays], left: int = 0, name: str = MODEL
    ) -> list[Arrays | CoreError]:
        """Send requests and return their answers or errors.

        When the event `begun` is set, all but the first `left` requests are cancelled.
        """

        async def act() -> list[Arrays | CoreError]:
            replies = [self._handed_in(request_of(inputs, (), name)) for inputs in many]
            await asyncio.to_thread(begun.wait, PATIENCE_S)
            for reply in replies[left:]:
                if isinstance(reply, Reply):
                    reply.cancel()
            return list(await asyncio.gather(*map(_answer, replies)))

        return self._call(act())

    def after_cancelling(self, inputs: Arrays, name: str = MODEL) -> list[Arrays | CoreError]:
        """Send one request to a decoupled model and cancel it at its first answer.

        Return all answers and errors up to the end. Raises CoreError if the request is refused at once.
        """

        async def act() -> list[Arrays | CoreError]:
            reply = self._handed_in(request_of(inputs, (), name))
            if isinstance(reply, CoreError):
                raise reply
            found: list[Arrays | CoreError] = []
            ended = asyncio.get_running_loop().create_future()

            def heard(item: InferenceResponse | CoreError | None, final: bool) -> None:
                if not found:
                    reply.cancel()
                if item is not None:
                    found.append(item if isinstance(item, CoreError) else _arrays(item))
                if final and not ended.done():
                    ended.set_result(None)

            reply.listen(heard)
            await ended
            return found

        return self._call(act())

    def _handed_in(self, request: InferenceRequest) -> Reply | CoreError:
        try:
            return self._server.models.infer(request)
        except CoreError as error:
            return error


class AskedModel:
    """One model of a Served. Inputs are keyword arguments: model(x=array)["y"]."""

    def __init__(self, served: Served, name: str):
        self.served = served
        self._name = name

    def __call__(self, outputs: Sequence[str] = (), **inputs: np.ndarray) -> Arrays:
        """Send one request and return its answer. Raises CoreError if the request fails."""
        return self.served.ask(inputs, outputs, self._name)

    def together(self, *many: Arrays) -> list[Arrays | CoreError]:
        """Send requests at the same moment. Return their answers or errors."""
        return self.served.together(many, (), self._name)

    @property
    def config(self) -> ModelConfig:
        """The configuration of the loaded model."""
        return self.served.config(self._name)


def request_of(inputs: Arrays, outputs: Sequence[str] = (), name: str = MODEL) -> InferenceRequest:
    """Return a request like that of a frontend: its tensors hold wire bytes."""
    tensors = {key: _on_the_wire(key, array) for key, array in inputs.items()}
    return InferenceRequest(
        name, tensors, id="kit", outputs=tuple(RequestedOutput(each) for each in outputs)
    )


def _on_the_wire(name: str, array: np.ndarray) -> Tensor:
    made = Tensor.of(name, array)
    return Tensor(name, made.dtype, made.shape, raw=bytes(made.raw))


async def _answer(reply: Reply | CoreError) -> Arrays | CoreError:
    if isinstance(reply, CoreError):
        return reply
    try:
        return _arrays(await reply)
    except CoreError as error:
        return error


async def _stream(reply: Reply | CoreError) -> list[Arrays]:
    if isinstance(reply, CoreError):
        raise reply
    answers = []
    async for item in reply:
        if isinstance(item, CoreError):
            raise item
        answers.append(_arrays(item))
    return answers


def _arrays(response: InferenceResponse) -> Arrays:
    return {tensor.name: _as_a_client_sees_it(tensor) for tensor in response.outputs}


def _as_a_client_sees_it(tensor: Tensor) -> np.ndarray:
    """Return the array of an output: text decoded from wire bytes, other datatypes without a copy."""
    if tensor.dtype is dtypes.BYTES:
        return Tensor(tensor.name, tensor.dtype, tensor.shape, raw=tensor.raw).array
    return tensor.array
