"""Batches on GPUs: two under way, so that copies overlap with computation.

begin (loop) ─► starting thread: feed, run, leave ─► completing thread: mark, answers ─► done (loop)
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from backend_pytorch import cuda
from backend_pytorch.device_feed import DeviceFeed, Fed
from backend_pytorch.device_results import DeviceResults, Leaving
from backend_pytorch.instance import texts_of
from core import dtypes
from core.batch import Batch
from core.dtypes import DataType
from core.errors import CoreError
from core.ragged import scattered

if TYPE_CHECKING:
    from backend_pytorch.instance import TorchInstance
    from backend_pytorch.program import Program

logger = logging.getLogger("core")

Done = Callable[[BaseException | None], None]


class Started(NamedTuple):
    """A batch under way.

    fed    held until the mark: the device may read it until then
    mark   comes to pass when all outputs are where they go
    """

    fed: Fed
    leaving: dict[str, Leaving]
    mark: Any


class DeviceRuns:
    """Runs the batches of an instance that has a streams. Made when the instance opens, on its thread.

    Invariants:
    1. Batches are started by one thread and completed by another, both in the order in which they come.
    2. Before `done`, nothing on a device uses what the batch was given, and all its answers are made.
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
        self._starting = ThreadPoolExecutor(1, f"pytorch-{instance.name}")
        self._completing = ThreadPoolExecutor(1, f"pytorch-{instance.name}-done")
        # Threads are made by the first task, and inherit the cores of who hands it in: this thread's.
        self._starting.submit(_nothing).result()
        self._completing.submit(_nothing).result()

    @property
    def takes_device(self) -> bool:
        """True if inputs may be on a GPU."""
        return self._streams.place is not None

    def begin(self, batch: Batch, done: Done) -> None:
        """Start to answer a batch. Loop thread."""
        self._starting.submit(self._start, batch, done)

    def _start(self, batch: Batch, done: Done) -> None:
        """On the starting thread."""
        try:
            started = self._started(batch)
        except BaseException as error:
            self._tell(done, self._failure(error))
        else:
            self._completing.submit(self._finish, batch, started, done)

    def _started(self, batch: Batch) -> Started:
        instance, streams = self._instance, self._streams
        try:
            with ExitStack() as entered:
                instance.enter(entered)
                if self._no_cudnn:
                    entered.enter_context(cuda.without_cudnn())
                with streams.feeding():
                    fed = self._feed(batch)
                batch.compute_start_ns = time.monotonic_ns()
                entered.enter_context(streams.computing())
                outputs = instance.outputs_of(fed.tensors, batch)
                leaving = self._results.leaving(outputs, batch, fed.lent)
                return Started(fed, leaving, streams.mark())
        except BaseException:
            self._quiet()
            raise

    def _finish(self, batch: Batch, started: Started, done: Done) -> None:
        """On the completing thread."""
        error: BaseException | None = None
        try:
            started.mark.wait()
            batch.outputs_ready()
            with self._streams.current():
                self._answer(batch, started.leaving)
            if self._cleans:
                cuda.empty_cache()
        except BaseException as raised:
            error = self._failure(raised)
        self._tell(done, error)

    def _answer(self, batch: Batch, leaving: dict[str, Leaving]) -> None:
        config = self._instance.model.config
        if not config.batch_output:
            batch.respond_all(self._results.answers(leaving, batch))
            return
        for i, parts in enumerate(scattered(config, batch, self._results.arrays(leaving))):
            batch.respond(i, parts)

    def _quiet(self) -> None:
        """Wait until the device no longer uses what a batch that failed was given."""
        try:
            self._streams.settle()
        except Exception as error:  # it is told by who runs into it next, if it lasts
            logger.debug("model '%s': %s", self._instance.model.name, error)

    def _failure(self, error: BaseException) -> BaseException:
        return error if isinstance(error, CoreError) else self._instance.failed(error)

    def _tell(self, done: Done, error: BaseException | None) -> None:
        self._instance.loop.call_soon_threadsafe(done, error)

    def close(self) -> None:
        """Give back the threads, when all that was begun is done."""
        self._starting.shutdown()
        self._completing.shutdown()
        self._quiet()


def device_runs(
    instance: TorchInstance,
    program: Program,
    inputs: dict[str, DataType],
    outputs: dict[str, DataType],
    scalar_inputs: set[str],
) -> DeviceRuns:
    """What runs the batches of an instance on GPUs that opens.

    inputs, outputs   of the program: name → datatype
    scalar_inputs     those without a dimension for the program
    """
    config = instance.model.config
    streams = cuda.streams_of(instance.device, program)
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


def _nothing() -> None:
    """A task that makes its thread begin."""
