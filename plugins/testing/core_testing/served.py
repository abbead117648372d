"""Served: an InferenceServer on a thread of its own, for tests without coroutines.

test ─► [Served] ─► core.Server ─► pipeline ─► the backend under test.
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
from core_testing.server_thread import PATIENCE_S, ServerThread

T = TypeVar("T")


class Served(ServerThread):
    """The models of one folder, served. Methods are called by the test's thread, one at a time.

    Nothing is loaded until `load`.

    backend      that every model gets, whatever its configuration says; None for those installed
    repository   folder of the models' folders
    options      of the server, named with underscores
    """

    def load(self, name: str = MODEL) -> None:
        """Load a model; its error is raised."""
        self._call(self._server.models.load(name))

    def load_together(self, names: Sequence[str]) -> None:
        """Load models at the same moment, each on a thread of its own.

        Raises AssertionError that says how many cannot be loaded, and why the first cannot.
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
        """Unload a model and wait until it is gone."""
        self._call(self._unload(name))

    async def _unload(self, name: str) -> None:
        versions = [each for each in self._server.models.versions() if each.name == name]
        await self._server.models.unload(name)
        while any(each.state not in ("UNAVAILABLE",) for each in versions):
            await asyncio.sleep(0.001)

    def config(self, name: str = MODEL) -> ModelConfig:
        """The configuration that the model runs with."""
        return self._on_loop(lambda: self._server.models.config(name))

    def statistics(self, name: str = MODEL) -> dict[str, Any]:
        """The entry of the model's first version, as clients get it."""
        return self._on_loop(lambda: self._server.control.health.statistics_here(name))[0]

    def executions(self, name: str = MODEL) -> int:
        """How many executions have ended since the load; that of a stream ends after its last answer."""
        return int(self.statistics(name)["execution_count"])

    def answer(self, inputs: Arrays, name: str = MODEL) -> Arrays | CoreError:
        """The answer to one request, or its error."""
        return self.together([inputs], name=name)[0]

    def ask(self, inputs: Arrays, outputs: Sequence[str] = (), name: str = MODEL) -> Arrays:
        """The answer to one request; its error is raised."""
        answer = self.together([inputs], outputs, name)[0]
        if isinstance(answer, CoreError):
            raise answer
        return answer

    def together(
        self, many: Sequence[Arrays], outputs: Sequence[str] = (), name: str = MODEL
    ) -> list[Arrays | CoreError]:
        """Answers or errors of requests that arrive at the same moment, so that they may share a batch."""
        return self.send([request_of(inputs, outputs, name) for inputs in many])

    def send(self, requests: Sequence[InferenceRequest]) -> list[Arrays | CoreError]:
        """The same for requests that the test has made."""
        return self._call(self._answers(requests))

    async def _answers(self, requests: Sequence[InferenceRequest]) -> list[Arrays | CoreError]:
        replies = [self._handed_in(request) for request in requests]
        return list(await asyncio.gather(*map(_answer, replies)))

    def in_sequence(
        self, many: Sequence[Arrays], correlation_id: int, name: str = MODEL
    ) -> list[Arrays | CoreError]:
        """Answers or errors of the requests of one sequence, from its start to its end."""
        return self.in_sequences(many, [correlation_id], name)[0]

    def in_sequences(
        self, many: Sequence[Arrays], correlation_ids: Sequence[int], name: str = MODEL
    ) -> list[list[Arrays | CoreError]]:
        """The same for several sequences at once: first the first request of each, then the second, …"""
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
        """All answers to one request to a decoupled model; an error among them is raised."""
        return self.streams([inputs], name)[0]

    def streams(self, many: Sequence[Arrays], name: str = MODEL) -> list[list[Arrays]]:
        """All answers to each of several requests that arrive at the same moment."""

        async def collect() -> list[list[Arrays]]:
            replies = [self._handed_in(request_of(inputs, (), name)) for inputs in many]
            return list(await asyncio.gather(*map(_stream, replies)))

        return self._call(collect())

    def while_asking(
        self, many: Sequence[Arrays], meanwhile: Callable[[InferenceServer], Any]
    ) -> list[Any]:
        """Hand in requests, then call `meanwhile(server)` on the loop at once; the answers.

        A coroutine that `meanwhile` gives is awaited too, beside the answers.
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
        """Answers or errors of requests; all but the first `left` are cancelled once an event is set."""

        async def act() -> list[Arrays | CoreError]:
            replies = [self._handed_in(request_of(inputs, (), name)) for inputs in many]
            await asyncio.to_thread(begun.wait, PATIENCE_S)
            for reply in replies[left:]:
                if isinstance(reply, Reply):
                    reply.cancel()
            return list(await asyncio.gather(*map(_answer, replies)))

        return self._call(act())

    def after_cancelling(self, inputs: Arrays, name: str = MODEL) -> list[Arrays | CoreError]:
        """What still comes of a stream that is cancelled after its first answer, up to its end."""

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
    """One model of a Served, asked by the names of its inputs: model(x=array)["y"]."""

    def __init__(self, served: Served, name: str):
        self.served = served
        self._name = name

    def __call__(self, outputs: Sequence[str] = (), **inputs: np.ndarray) -> Arrays:
        """The answer to one request; its error is raised."""
        return self.served.ask(inputs, outputs, self._name)

    def together(self, *many: Arrays) -> list[Arrays | CoreError]:
        """Answers or errors of requests that arrive at the same moment."""
        return self.served.together(many, (), self._name)

    @property
    def config(self) -> ModelConfig:
        """The configuration that the model runs with."""
        return self.served.config(self._name)


def request_of(inputs: Arrays, outputs: Sequence[str] = (), name: str = MODEL) -> InferenceRequest:
    """A request as a frontend makes one: tensors hold wire bytes."""
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
    """Text through its wire form; other tensors as they lie in the backend's memory, without a copy."""
    if tensor.dtype is dtypes.BYTES:
        return Tensor(tensor.name, tensor.dtype, tensor.shape, raw=tensor.raw).array
    return tensor.array
