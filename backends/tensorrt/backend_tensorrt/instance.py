"""Begin and finish batches. Several are in flight, so that copies overlap with computation.

begin (loop) ─► starting thread: feed, start ─► completing thread: finish, answers ─► done (loop)
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from backend_tensorrt.answers import rows_of, staying
from backend_tensorrt.check import check
from backend_tensorrt.context import Failure
from backend_tensorrt.feed import feed_of
from backend_tensorrt.graphs import specs_of
from backend_tensorrt.problems import failed
from backend_tensorrt.profiles import numbers
from backend_tensorrt.run import Runner, Started, as_clients_see
from backend_tensorrt.slot import Slot
from core import dtypes
from core.backend import ModelInstance
from core.batch import Batch
from core.errors import CoreError, invalid
from core.ragged import scattered

if TYPE_CHECKING:
    from backend_tensorrt.backend import TensorRtModel

Done = Callable[[BaseException | None], None]


class TensorRtInstance(ModelInstance):
    """Run batches on its own contexts and streams, with an engine that the instances of a GPU share."""

    model: TensorRtModel
    placement = "callback"
    memory = "device"

    def open(self) -> None:
        config = self.model.config
        if self.device.kind != "GPU":
            raise invalid(
                f"unable to load model '{config.name}', TensorRT backend supports only GPU device, instance "
                f"'{self.name}' is on {self.device}; use kind: KIND_GPU where a GPU is"
            )
        dla = next((each.id for each in self.secondary_devices if each.kind == "NVDLA"), -1)
        self._engine = self.model.engine_on(self.device.id, dla)
        check(config, self._engine.facts)
        self._loader = self.model.loader
        self._cuda = self._loader.library.cuda
        self._read_outputs()
        settings = self.model.settings
        self.ahead = settings.ahead
        self._completing = ThreadPoolExecutor(1, f"tensorrt-{self.name}")
        self._starting, self._shares = self.model.starting_thread(self.device.id, self.name)
        # The first task starts a thread, which inherits the cores of the submitting thread: this one.
        self._completing.submit(_nothing).result()
        self._starting.submit(_nothing).result()
        with self._cuda.on(self.device.id):
            try:
                self._runner = self._new_runner()
            except CoreError:
                raise
            except Exception as error:
                raise self._failed(error) from error
        self._free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
        for slot in self._runner.slots:
            self._free.put(slot)

    def _new_runner(self) -> Runner:
        facts, config = self._engine.facts, self.model.config
        profiles = numbers(self.profiles, facts.profile_count, config.name)
        return Runner(
            self._loader,
            self._engine,
            device=self.device.id,
            names=self.profiles,
            specs=specs_of(config, facts, profiles),
            settings=self.model.settings,
            model=config.name,
            coalesces=self.model.backend.settings.coalesces,
        )

    def _read_outputs(self) -> None:
        config, ports = self.model.config, self._engine.facts.outputs
        states = {each.output_name: each.data_type for each in config.sequence_batching.state}
        self._states = frozenset(states)
        self._types = {
            name: dtypes.BY_NUMBER[number]
            for name, number in (
                *states.items(),
                *((io.name, io.data_type) for io in config.output),
            )
        }
        self._names = list(self._types)
        self._dims = {io.name: tuple(io.dims) for io in config.output if not ports[io.name].dims}
        self._scatters = bool(config.batch_output)
        # Outputs without a batch dimension, which every request gets whole.
        self._whole = frozenset(name for name, port in ports.items() if port.on_host)

    def begin(self, batch: Batch, done: Done) -> None:
        self._starting.submit(self._start, batch, done)

    def _start(self, batch: Batch, done: Done) -> None:
        """Start a batch on the device, and queue `_finish`; report the error if it cannot start.

        Runs on the starting thread, which instances of a GPU may share.
        """
        try:
            slot = self._free.get_nowait()  # core begins no more batches than there are slots
        except queue.Empty:
            self._report(done, RuntimeError("more batches were begun than there are slots"))
            return
        try:
            with self._cuda.on(self.device.id):
                started = self._started(batch, slot)
        except BaseException as error:
            self._free.put(slot)
            self._report(done, error)
        else:
            self._completing.submit(self._finish, batch, started, done)

    def _started(self, batch: Batch, slot: Slot) -> Started:
        config, facts = self.model.config, self._engine.facts
        try:
            feed = feed_of(batch, config, facts, self.device.id)
            batch.compute_start_ns = time.monotonic_ns()
            names = batch.wanted(self._names)
            stay = set() if self._scatters else staying(batch, self._states) - self._dims.keys()
            stay = {name for name in stay & set(names) if not facts.outputs[name].on_host}
            return self._runner.start(feed, slot, names, stay)
        except BaseException as error:
            self._runner.settle()
            if isinstance(error, (CoreError, KeyError)):
                raise
            raise self._failed(error) from error

    def _finish(self, batch: Batch, started: Started, done: Done) -> None:
        """Wait for a batch, answer it, free its slot, and report the end or the error.

        Runs on the completing thread, in the order of the starts.
        """
        error: BaseException | None = None
        try:
            with self._cuda.on(self.device.id):
                outputs = self._runner.finish(started)
            batch.outputs_ready()
            self._answer(batch, outputs)
        except CoreError as raised:
            error = raised
        except BaseException as raised:
            error = self._failed(raised)
        self._free.put(started.slot)
        self._report(done, error)

    def _answer(self, batch: Batch, outputs: dict[str, Any]) -> None:
        batches = bool(self.model.config.max_batch_size)
        ports = self._engine.facts.outputs
        seen = {
            name: as_clients_see(ports[name], value, batches, self._dims.get(name))
            for name, value in outputs.items()
        }
        if not self._scatters:
            batch.respond_all(rows_of(batch, seen, self._types, self._whole))
            return
        for i, parts in enumerate(scattered(self.model.config, batch, seen)):
            batch.respond(i, parts)

    def _failed(self, error: BaseException) -> CoreError:
        report = self._loader.reports.take()
        text = " ".join(str(error).split()) or type(error).__name__
        if report and not isinstance(error, Failure):
            text = f"{report}; {text}"
        return failed(self.model.name, self.name, self.device, text)

    def _report(self, done: Done, error: BaseException | None) -> None:
        self.loop.call_soon_threadsafe(done, error)

    def close(self) -> None:
        """End the threads; free contexts, streams and memory. The engine stays until the model unloads."""
        if hasattr(self, "_completing"):
            self._completing.shutdown()
            if not self._shares:
                self._starting.shutdown()
        if hasattr(self, "_runner"):
            with self._cuda.on(self.device.id):
                self._runner.close()
                del self._runner
                self._free = queue.SimpleQueue()
        self.__dict__.pop("_engine", None)


def _nothing() -> None:
    """Do nothing. As a task, it makes the thread start."""
