"""Running: a model of any backend, with the interface of a Python model. Requires core."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from backend_python.apart.answers import Answers
from backend_python.api.host import current
from backend_python.api.request import InferenceRequest
from backend_python.child.host import ChildHost
from core import config as configuration
from core.alone import ModelAlone, opened_backend
from core.backend import Device, ModelInstance, implements
from core.batch import Batch
from core.config import ModelConfig
from core.errors import CoreError, Fatal, call_author
from core.request import InferenceRequest as CoreRequest
from core.request import RequestedOutput
from core.tensor import Tensor, array_tensor

# Exit status of a process whose instance is out of service: EX_SOFTWARE of sysexits.h.
BROKEN = 70
_MODE = "EXECUTION_MODE"
_WATCH_S = 0.02  # how often a stream looks whether its requests are cancelled
_ORIGIN = "the configuration that the server has sent"


def completed(config: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the configuration, completed by the backend from the files in the version's directory.

    Raises CoreError, also in place of another exception of the backend's import, open or complete.
    """
    message = _configuration(json.dumps(config))
    backend = opened_backend(message, _settings())
    try:
        if backend.complete is not None:
            call_author(backend.name, "complete", backend.complete, message, Path(path), backend)
    finally:
        backend.close()
    return configuration.to_json(message)


class Running:
    """One instance of a model. Not thread-safe: use it from one thread only.

    arguments   those that `initialize` of a Python model receives
    path        of the version's directory
    """

    def __init__(self, arguments: Mapping[str, str], path: str):
        self._loop = asyncio.new_event_loop()
        device = Device(
            arguments["model_instance_kind"], int(arguments["model_instance_device_id"])
        )
        self._alone = ModelAlone(
            _configuration(arguments["model_config"]),
            _settings(),
            name=arguments["model_name"],
            version=int(arguments["model_version"]),
            path=Path(path),
            directory=Path(arguments["model_repository"]),
            seat=(arguments["model_instance_name"], device),
            loop=self._loop,
        )
        self._name = arguments["model_name"]
        self._signature = self._alone.signature
        self.instance = self._alone.instance

    def execute(self, requests: Sequence[InferenceRequest]) -> list[Any]:
        """Return a response for each request, None for requests that are answered by their senders.

        Exit the process on an error that takes the instance out of service. The server then starts another.
        """
        asked = [self._request(each) for each in requests]
        answers = Answers(requests, asked, self._signature)
        try:
            self._execute(Batch(asked, self._signature, answers), answers, requests)
        except Fatal as error:
            print(f"'{self.instance.name}' leaves service: {error.message}", file=sys.stderr)
            sys.stderr.flush()
            os._exit(BROKEN)
        except CoreError as error:  # an error of the batch; it keeps its kind
            answers.fail_rest(error)
        return answers.found

    def _execute(
        self, batch: Batch, answers: Answers, requests: Sequence[InferenceRequest]
    ) -> None:
        instance = self.instance
        if implements(instance, ModelInstance, "stream"):
            with _watched(instance, batch, requests):
                for i, request in enumerate(batch.requests):
                    for outputs in instance.stream(request):
                        batch.respond(i, outputs, final=False)
                        if requests[i].is_cancelled():
                            break
                    batch.finish(i)
        elif instance.placement == "callback":
            self._loop.run_until_complete(_begun(instance, batch))
        elif inspect.iscoroutinefunction(instance.execute):
            answers.take(self._loop.run_until_complete(instance.execute(batch)))
        else:
            answers.take(self._alone.execute(batch))

    def _request(self, request: InferenceRequest) -> CoreRequest:
        inputs = {
            each.name(): array_tensor(each.name(), each.triton_dtype(), each._values())
            for each in request.inputs()
        }
        wanted = request.requested_output_names()
        everything = wanted >= self._signature.outputs.keys()
        made = CoreRequest(
            self._name,
            inputs,
            id=request.request_id(),
            outputs=() if everything else tuple(map(RequestedOutput, sorted(wanted))),
            parameters=json.loads(request.parameters()),
            correlation_id=request.correlation_id(),
            flags=request.flags(),
            timeout_us=request.timeout(),
        )
        if self._signature.max_batch_size:
            made.rows = self._rows(inputs)
        return made

    def _rows(self, inputs: Mapping[str, Tensor]) -> int:
        """Return the number of rows of a request, 1 if it has no tensor with dimensions.

        This is the first dimension of any input except shape tensors: the server has checked that they agree.
        """
        for name, tensor in inputs.items():
            spec = self._signature.inputs.get(name)
            if (spec is None or not spec.shape_tensor) and tensor.shape:
                return int(tensor.shape[0])
        return 1

    def close(self) -> None:
        """Close the instance, then its event loop."""
        try:
            self._alone.close()
        finally:
            self._loop.close()


def _configuration(text: str) -> ModelConfig:
    """Return the parsed configuration without EXECUTION_MODE, which the backend must not see."""
    message = configuration.parse_json(text, _ORIGIN)
    message.parameters.pop(_MODE, None)
    return message


def _settings() -> dict[str, str]:
    """Return the backend's settings from --backend-config, which the server sent with the model."""
    host = current()
    assert isinstance(host, ChildHost), "it runs in a process of its own only"
    return dict(host.backend_settings)


@contextlib.contextmanager
def _watched(
    instance: ModelInstance, batch: Batch, requests: Sequence[InferenceRequest]
) -> Iterator[None]:
    """Call `instance.cancelled` if all requests are cancelled before the body ends, as the server does.

    A thread watches, because the instance may wait for something that never comes.
    """
    if not implements(instance, ModelInstance, "cancelled"):
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_WATCH_S):
            if all(each.is_cancelled() for each in requests):
                for each in batch.requests:
                    each.cancelled = True
                instance.cancelled(batch)
                return

    threading.Thread(target=watch, name="watch", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


async def _begun(instance: ModelInstance, batch: Batch) -> None:
    """Begin a batch and wait until the instance calls `done`. Raise the error of `done`, if any."""
    ended = asyncio.get_running_loop().create_future()

    def done(error: BaseException | None) -> None:
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

    instance.begin(batch, done)
    await ended
