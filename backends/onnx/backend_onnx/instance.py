"""execute: feed ─► run ─► outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_onnx.device import gathered, place_of
from backend_onnx.feed import Feed, encoded
from backend_onnx.options import run_options
from backend_onnx.run import run_of
from backend_onnx.session import ort_text
from core import dtypes, termination
from core.backend import ModelInstance
from core.batch import Batch
from core.errors import CoreError, Fatal, Kind, internal
from core.ragged import scattered
from core.request import DeviceOutput

if TYPE_CHECKING:
    from backend_onnx.backend import OnnxModel

_BROKEN_DEVICE = ("EngineError", "DeviceReset")  # errors after which no run on the device works


class _NoText(CoreError):
    """An output has text that ONNX Runtime cannot pass to Python. The request that caused it is unknown."""


class Termination(termination.Termination):
    """End runs of one instance: ONNX Runtime reads the flag in RunOptions between two nodes of a graph."""

    def __init__(self, options: Any):
        super().__init__()
        self._options = options

    def stop(self) -> None:
        self._options.terminate = True

    def clear(self) -> None:
        self._options.terminate = False


class OnnxInstance(ModelInstance):
    """Run batches on a session, which other instances of the device may use at the same time."""

    model: OnnxModel
    placement = "auto"  # every thread may run a session

    def open(self) -> None:
        session, graph = self.model.session_on(self.device, self.host_policy.cores)
        config = self.model.config
        outputs: dict[str, Any] = {s.output_name: s for s in config.sequence_batching.state}
        outputs.update((io.name, io) for io in config.output)
        self._names = list(outputs)
        self._batches = bool(config.max_batch_size)
        self._scatters = bool(config.batch_output)
        # A scalar has shape [1] for clients, and no dimension for ONNX Runtime.
        self._scalars = {
            name: tuple(io.dims) for name, io in outputs.items() if not graph.outputs[name].dims
        }
        self._texts = {n for n, info in graph.outputs.items() if info.dtype is dtypes.BYTES}
        self._can_be_parted = self._batches and not (config.batch_input or config.batch_output)
        self._as_they_are = not (self._scalars or self._texts)
        self._feed = Feed(config, graph)
        options = run_options(config)
        self._termination = Termination(options)
        self._run = run_of(
            session,
            graph,
            options,
            place=place_of(self.device),
            model=self.model.name,
        )
        self.memory = "device" if self._run.takes_device and not self._scatters else "host"

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        feed = self._feed(batch)
        try:
            outputs = self._outputs_of(feed, batch)
        except _NoText:
            if len(batch) == 1 or not self._can_be_parted:
                raise
            self._one_by_one(feed, batch)
            return None
        if not self._as_they_are:
            self._convert(outputs)
        batch.outputs_ready()
        if not self._scatters:
            return outputs
        for i, parts in enumerate(scattered(self.model.config, batch, outputs)):
            batch.respond(i, parts)
        return None

    def _convert(self, outputs: dict[str, Any]) -> None:
        for name in outputs:
            if name in self._texts:
                outputs[name] = encoded(outputs[name])
            if name in self._scalars:
                outputs[name] = np.asarray(outputs[name]).reshape(self._scalars[name])

    def _one_by_one(self, feed: dict[str, Any], batch: Batch) -> None:
        """Answer each request with its own run, because an output of the whole batch could not be read.

        A run that fails, fails only its request.
        """
        first = 0
        for i, request in enumerate(batch.requests):
            rows = slice(first, first + request.rows)
            first = rows.stop
            part = {name: array[rows] for name, array in feed.items()}
            try:
                outputs = self._run(part, self._names, request.rows)
            except Exception as raised:
                batch.fail(i, self._failed(raised), failure=True)
            else:
                self._convert(outputs)
                batch.respond(i, outputs)

    def _outputs_of(self, feed: dict[str, Any], batch: Batch) -> dict[str, Any]:
        rows = batch.rows if self._batches else 0
        self._termination.begin(batch)
        try:
            outputs = self._run(feed, batch.wanted(self._names), rows, self._staying(batch))
        except Exception as error:
            raise (self._termination.end() or self._failed(error)) from error
        self._termination.end()
        return outputs

    def cancelled(self, batch: Batch) -> None:
        self._termination.now(batch)

    def _staying(self, batch: Batch) -> Collection[str]:
        """Return the names of the outputs that a request of the batch wants in device memory.

        Scalars are left out. Empty for an instance whose `memory` is "host".
        """
        if self.memory == "host":
            return ()
        return {
            output.name
            for request in batch.requests
            for output in request.outputs
            if isinstance(output, DeviceOutput) and output.name not in self._scalars
        }

    def gather(self, name: str, arrays: list[Any]) -> Any:
        """Join `arrays` on the GPU with CuPy. Return NotImplemented if CuPy cannot; see `gathered`."""
        return gathered(arrays, self.device.id)

    def _failed(self, error: Exception) -> CoreError:
        if isinstance(error, UnicodeDecodeError):
            return _NoText(
                Kind.INTERNAL,
                f"model '{self.model.name}' gave text that is no UTF-8 ({error.reason}), which ONNX "
                "Runtime's Python interface cannot hand over",
            )
        text = f"model '{self.model.name}': {ort_text(error)}"
        if type(error).__name__ in _BROKEN_DEVICE:
            return Fatal(f"{text}; instance '{self.name}' on {self.device} leaves service")
        return internal(text)

    def close(self) -> None:
        """Release the session. The model keeps a shared session until it unloads."""
        self._feed = self._run = None  # type: ignore[assignment]
