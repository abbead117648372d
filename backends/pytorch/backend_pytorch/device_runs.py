"""Run batches on GPUs. Two are in flight, so that copies overlap with computation.

begin (loop) ─► starting thread: feed, run, pending ─► completing thread: mark, answers ─► done (loop)
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from backend_pytorch import cuda
from backend_pytorch.device_feed import DeviceFeed, Fed
from backend_pytorch.device_results import DeviceResults, PendingOutput
from backend_pytorch.instance import texts_of
from backend_pytorch.lane import Lane
from core import dtypes
from core.batch import Batch
from core.dtypes import DataType
from core.errors import CoreError
from core.native.thread_queue import caller_on
from core.ragged import scattered

if TYPE_CHECKING:
    from backend_pytorch.instance import TorchInstance
    from backend_pytorch.program import Program

logger = logging.getLogger("core")

Done = Callable[[BaseException | None], None]


class Started(NamedTuple):
    """A batch in flight.

    fed       inputs; they must live until the mark, because the device may read them
    pending   outputs; valid after the mark
    mark      reached when all outputs are copied
    """

    fed: Fed
    pending: dict[str, PendingOutput]
    mark: Any


class DeviceRuns:
    """Run the batches of an instance that has streams. The instance makes it in `open`.

    Invariants:
    1. One thread starts batches, and another one completes them, both in the order of `begin`.
    2. When `done` is called, no device uses the inputs of the batch, and all its answers are made.
    """

    def __init__(
        self, instance: TorchInstance, streams: Any, feed: DeviceFeed, results: DeviceResults
    ):
        self._instance = instance
        self._streams = streams
        self._feed = feed
        self._results = results
        parameters = instance.model.parameters
        self._no_cudnn = bool(parameters.boolean("DISABLE_CUDNN"))
        self._cleans = bool(parameters.boolean("ENABLE_CACHE_CLEANING"))
        self._call_on_loop: Callable[[Callable[[], object]], object] | None = None
        self._starting = Lane(f"pytorch-{instance.name}")
        self._completing = Lane(f"pytorch-{instance.name}-done")

    @property
    def takes_device(self) -> bool:
        """Whether inputs may be on a GPU."""
        return self._streams.place is not None

    def begin(self, batch: Batch, done: Done) -> None:
        """Start a batch, and call `done` on the event loop when it is answered. Event loop only."""
        if self._call_on_loop is None:
            self._call_on_loop = caller_on(self._instance.loop)
        self._starting.put(self._start, batch, done)

    def _start(self, batch: Batch, done: Done) -> None:
        """Start a batch on the device, and queue `_finish`; report the error if it cannot start.

        Runs on the starting thread.
        """
        try:
            started = self._started(batch)
        except BaseException as error:
            self._report(done, self._failure(error))
        else:
            self._completing.put(self._finish, batch, started, done)

    def _started(self, batch: Batch) -> Started:
        instance, streams = self._instance, self._streams
        try:
            with ExitStack() as entered:
                instance.enter(entered)
                if self._no_cudnn:
                    entered.enter_context(torch.backends.cudnn.flags(enabled=False))
                with streams.feeding():
                    fed = self._feed(batch)
                batch.compute_start_ns = time.monotonic_ns()
                entered.enter_context(streams.computing())
                outputs = instance.outputs_of(fed.tensors, batch)
                pending = self._results.pending(outputs, batch, fed.lent)
                return Started(fed, pending, streams.mark())
        except BaseException:
            self._settle()
            raise

    def _finish(self, batch: Batch, started: Started, done: Done) -> None:
        """Wait for a batch, answer it, and report the end or the error. Runs on the completing thread."""
        error: BaseException | None = None
        try:
            started.mark.wait()
            batch.outputs_ready()
            with self._streams.current():
                self._answer(batch, started.pending)
            if self._cleans:
                torch.cuda.empty_cache()
        except BaseException as raised:
            error = self._failure(raised)
        self._report(done, error)

    def _answer(self, batch: Batch, pending: dict[str, PendingOutput]) -> None:
        config = self._instance.model.config
        if not config.batch_output:
            batch.respond_all(self._results.answers(pending, batch))
            return
        for i, parts in enumerate(scattered(config, batch, self._results.arrays(pending))):
            batch.respond(i, parts)

    def _settle(self) -> None:
        """Wait until the device no longer uses the inputs of a failed batch. An error is only logged."""
        try:
            self._streams.settle()
        except Exception as error:  # if it persists, the next batch reports it
            logger.debug("model '%s': %s", self._instance.model.name, error)

    def _failure(self, error: BaseException) -> BaseException:
        return error if isinstance(error, CoreError) else self._instance.failed(error)

    def _report(self, done: Done, error: BaseException | None) -> None:
        assert self._call_on_loop is not None
        self._call_on_loop(partial(done, error))

    def close(self) -> None:
        """Complete all batches, and end the threads."""
        self._starting.close()
        self._completing.close()
        self._feed.close()
        self._settle()


def device_runs(
    instance: TorchInstance,
    program: Program,
    inputs: dict[str, DataType],
    outputs: dict[str, DataType],
    scalar_inputs: set[str],
) -> DeviceRuns:
    """Return the DeviceRuns of an instance on GPUs.

    inputs, outputs   of the program: name → datatype
    scalar_inputs     names of inputs without a dimension for the program
    """
    config = instance.model.config
    polls = config.optimization.cuda.busy_wait_events
    streams = cuda.streams_of(instance.device, program, polls=polls)
    states = [state.output_name for state in config.sequence_batching.state]
    text = dtypes.BYTES.number
    feed = DeviceFeed(
        streams,
        config,
        inputs,
        scalar_inputs,
        writes=program.writes_inputs,
        texts=texts_of,
    )
    results = DeviceResults(
        streams,
        outputs,
        states,
        scalars=[io.name for io in config.output if io.HasField("reshape")],
        columns=[
            io.name
            for io in config.output
            if config.max_batch_size and io.data_type == text and tuple(io.dims) == (1,)
        ],
        keeps=program.keeps_outputs,
        scatters=bool(config.batch_output),
    )
    return DeviceRuns(instance, streams, feed, results)
