"""Run one batch: copies, execution, copies back.

feed ─► [Runner.start] ─► [Runner.finish] ─► outputs.

    copy stream     inputs of batch 1 │ inputs of batch 2 │ …
    compute stream                    │ batch 1           │ batch 2 │ …
    output stream                                         │ outputs of batch 1 │ …   (or the compute stream)

Only `finish` waits for the device, so that a second batch can start while the first one computes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backend_tensorrt import graphs, profiles
from backend_tensorrt.answers import OnDevice
from backend_tensorrt.context import Allocation, Context
from backend_tensorrt.cuda import Cuda, Graph, Memory
from backend_tensorrt.facts import Port
from backend_tensorrt.feed import Feed, Input, address_of, contiguous, padded
from backend_tensorrt.graphs import GraphSpec
from backend_tensorrt.loading import Engine, Loader
from backend_tensorrt.settings import Settings
from backend_tensorrt.slot import Slot
from core.devices import pools
from core.errors import CoreError
from core.native.gather import gather

logger = logging.getLogger("core")

Shape = tuple[int, ...]


@dataclass
class Started:
    """A batch in flight.

    results   output name → array; valid after the event `slot.done`
    """

    slot: Slot
    results: dict[str, Any] = field(default_factory=dict)


class Runner:
    """Run the batches of one instance. The instance's GPU must be the current device of the calling thread.

    Call `start` from one thread, and `finish` from one other thread.

    names   instance_group.profile in config.pbtxt: profile numbers as text; empty for profile 0
    specs   the CUDA graphs to capture
    Raises CoreError(INVALID) for a profile that the engine does not have.
    """

    def __init__(
        self,
        loader: Loader,
        engine: Engine,
        *,
        device: int,
        names: Sequence[str],
        specs: Sequence[GraphSpec],
        settings: Settings,
        model: str,
        coalesces: bool,
    ):
        pools.current().open(device)
        self._cuda: Cuda = loader.library.cuda
        self._device = device
        self._engine = engine
        self._facts = engine.facts
        self._settings = settings
        self._model = model
        self._coalesces = coalesces
        self._inputs = self._cuda.stream(settings.priority)
        self._compute = self._cuda.stream(settings.priority)
        self._outputs = (
            self._cuda.stream(settings.priority) if settings.output_stream else self._compute
        )
        self._profiles = profiles.profiles_of(engine.facts, names, model)
        self._contexts = {
            each.number: Context(loader, engine, each.number, settings.strategy, self._compute)
            for each in self._profiles
        }
        self._specs = list(specs)
        self.slots = [
            Slot(self._cuda, self._inputs, self._compute, busy=settings.busy)
            for _ in range(settings.ahead)
        ]
        # The largest first: when a buffer grows, its graphs become invalid.
        for spec in sorted(specs, key=lambda each: each.size, reverse=True):
            for slot in self.slots:
                self._warm(slot, spec)

    def _warm(self, slot: Slot, spec: GraphSpec) -> None:
        """Capture a graph before the first batch needs it.

        If no profile allows its shapes, or if the capture fails, batches of this size run without a graph.
        """
        if spec not in self._specs:  # the capture has failed for another slot
            return
        try:
            profile = profiles.chosen(self._profiles, spec.shapes, {}, self._model)
        except CoreError as error:  # a default size must not prevent the load
            self._do_without(spec, error.message)
            return
        for name, port in self._facts.inputs.items():
            slot.buffer(name, True).at_least(port.byte_size(spec.shapes[name]))
        addresses = {name: slot.buffer(name, True).at_least(1) for name in self._facts.inputs}
        context = self._contexts[profile.number]
        context.shape(spec.shapes, {})
        allocations = context.bind(slot, addresses, {})
        context.enqueue(self._compute)
        self._compute.synchronize()
        self._capture(slot, context, profile.number, spec, allocations)

    def start(
        self, feed: Feed, slot: Slot, wanted: Sequence[str], staying: Collection[str]
    ) -> Started:
        """Start all work of a batch on the device. Return the batch for `finish`, which waits for that work.

        wanted    names of the outputs to return
        staying   names of the outputs that stay on the device
        Raises CoreError, context.Failure, and errors of CUDA.
        """
        spec = self._graph_for(feed)
        shapes = spec.shapes if spec is not None else dict(feed.shapes)
        profile = profiles.chosen(self._profiles, shapes, feed.numbers, self._model)
        context = self._contexts[profile.number]
        slot.held = [feed]
        context.shape(shapes, feed.values)
        addresses = {
            name: self._staged(slot, each, shapes[name], fixed=spec is not None)
            for name, each in feed.inputs.items()
        }
        slot.copied.record(self._inputs)
        self._compute.wait_event(slot.copied)
        fresh = self._fresh(context, () if spec is not None else staying)
        allocations = context.bind(slot, addresses, fresh)
        self._launch(slot, context, profile.number, spec, allocations)
        slot.computed.record(self._compute)
        if self._outputs is not self._compute:
            self._outputs.wait_event(slot.computed)
        rows = feed.rows if spec is not None else 0
        started = Started(slot)  # keeps the memory of copies, also if a later one cannot start
        for name in wanted:
            found = self._result(allocations[name], rows, name in staying, fresh.get(name))
            started.results[name] = found
        slot.done.record(self._outputs)
        return started

    def _graph_for(self, feed: Feed) -> GraphSpec | None:
        """Return the graph that runs a batch; None if the batch runs without one.

        A graph cannot run a batch whose inputs on the device need padding in another dimension than the rows.
        """
        spec = graphs.chosen(self._specs, feed.shapes) if self._specs else None
        if spec is None:
            return None
        for name, each in feed.inputs.items():
            if not each.on_host and spec.shapes[name][1:] != each.shape[1:]:
                return None
        return spec

    def _staged(self, slot: Slot, each: Input, shape: Shape, *, fixed: bool) -> int:
        """Return the device address at which the engine reads an input.

        Starts a copy to the slot's buffer, unless the input is `in_place` on the device and not `fixed`.
        shape   the engine's shape; a graph with a lower bound may have a larger one than the input
        fixed   whether the input must be in the slot's buffer
        """
        if not fixed and (address := each.in_place):
            return address
        name, size = each.port.name, each.port.byte_size(shape)
        target = slot.buffer(name, True).at_least(size)
        if each.on_host:
            source = self._on_host(slot, each, shape, size)
            if size and source:
                self._cuda.to_device(target, source, size, self._inputs)
            return target
        at = target
        for part in each.parts:
            if part.address:
                self._cuda.within(at, part.address, part.size, self._inputs)
            elif part.size:
                self._cuda.to_device(at, address_of(part.source), part.size, self._inputs)
            at += part.size
        return target

    def _on_host(self, slot: Slot, each: Input, shape: Shape, size: int) -> int:
        """Return the address of host memory that has the whole input, padded to `shape`; 0 if it is empty.

        An input in one piece may be used where it is. Otherwise it is copied to memory that the slot keeps.
        """
        grows = shape != each.shape
        if not grows and self._coalesces and (address := contiguous(each.parts)):
            return address
        if not grows and not self._settings.pinned_inputs and len(each.parts) == 1:
            return address_of(each.parts[0].source)
        pinned = self._settings.pinned_inputs
        staging = slot.staging(each.port.name, size) if pinned else np.empty(max(1, size), np.uint8)
        slot.held.append(staging)
        staging = staging[:size]
        gather([part.source for part in each.parts if part.size], staging[: each.size])
        if grows and shape[1:] == each.shape[1:]:
            staging[each.size :] = 0
        elif grows:
            assert each.port.dtype is not None
            staging[:] = padded(staging[: each.size].copy(), each.shape, shape, each.port.dtype)
        return int(staging.ctypes.data) if size else 0

    def _fresh(self, context: Context, staying: Collection[str]) -> dict[str, Memory]:
        """Return new memory for each output of `staying` whose size is known before the execution."""
        return {
            name: self._cuda.memory(max(1, size), self._compute)
            for name in staying
            if (size := context.output_size(name)) >= 0
        }

    def _launch(
        self,
        slot: Slot,
        context: Context,
        profile: int,
        spec: GraphSpec | None,
        allocations: dict[str, Allocation],
    ) -> None:
        if spec is None:
            context.enqueue(self._compute)
        elif (graph := slot.graph((profile, spec))) is not None:
            graph.launch(self._compute)
        else:
            context.enqueue(self._compute)  # prepares TensorRT for new shapes before the capture
            self._capture(slot, context, profile, spec, allocations)

    def _capture(
        self,
        slot: Slot,
        context: Context,
        profile: int,
        spec: GraphSpec,
        allocations: dict[str, Allocation],
    ) -> None:
        """Capture one more enqueue with the same addresses as a graph, and keep it in the slot.

        If that fails, or if an output has an allocator, batches of this size run without a graph.
        """
        reason = "the shapes of its outputs depend on its inputs' values"
        graph = None
        if all(each.allocator is None for each in allocations.values()):
            try:
                graph = self._captured(context)
            except Exception as error:  # CUDA and TensorRT raise various types
                reason = " ".join(str(error).split())
        if graph is not None:
            slot.keep((profile, spec), graph)
            return
        self._do_without(spec, reason)

    def _do_without(self, spec: GraphSpec, reason: str) -> None:
        self._specs.remove(spec)
        logger.warning("model '%s': no CUDA graph for %s: %s", self._model, dict(spec.most), reason)

    def _captured(self, context: Context) -> Graph:
        self._compute.begin_capture()
        try:
            context.enqueue(self._compute)
        finally:  # end the capture of the stream even after an error
            graph = self._compute.end_capture()
        return graph

    def _result(
        self, each: Allocation, rows: int, stays: bool, fresh: Memory | None
    ) -> np.ndarray | OnDevice:
        """Return the array of an output. It is valid once the slot is done, because a copy may be started.

        rows    rows of the batch if the engine may have run with more, else 0
        stays   whether the output stays on the device; a shape tensor is on the host in any case
        fresh   memory that `_fresh` allocated and the engine writes; None if it allocated none
        """
        port, shape = each.port, each.shape
        assert port.dtype is not None
        if rows and not port.on_host:
            shape = (rows, *shape[1:])
        if each.host is not None:
            return each.host  # the engine writes it until the slot is done
        size = port.byte_size(shape)
        if stays:
            if fresh is None:
                fresh = self._cuda.memory(max(1, size), self._compute)
                if size:
                    self._cuda.within(fresh.ptr, each.address, size, self._outputs)
            return OnDevice(self._cuda, fresh, port.dtype, shape, self._device)
        pinned = self._settings.pinned_outputs
        flat = (self._cuda.pinned(max(1, size)) if pinned else np.empty(max(1, size), np.uint8))[
            :size
        ]
        if size:
            self._cuda.to_host(int(flat.ctypes.data), each.address, size, self._outputs)
        return flat.view(port.dtype.numpy).reshape(shape)

    def finish(self, started: Started) -> dict[str, Any]:
        """Wait for a batch and return its outputs. Raises errors of the device, also from earlier work."""
        started.slot.done.synchronize()
        started.slot.held = []
        return started.results

    def settle(self) -> None:
        """Wait until the device has completed all work, and log its errors.

        After a failed start, the device then no longer uses the memory of the batch.
        """
        for stream in (self._inputs, self._compute, self._outputs):
            try:
                stream.synchronize()
            except Exception as error:
                logger.debug("model '%s': %s", self._model, error)

    def close(self) -> None:
        """Wait for the device, and free slots and contexts."""
        self.settle()
        self.slots.clear()
        self._contexts.clear()


def as_clients_see(port: Port, array: Any, batches: bool, dims: Shape | None) -> Any:
    """Return an output in the shape that clients see.

    A shape tensor is copied. With `batches`, the copy lacks the first value, which is the batch; otherwise it
    has the shape `dims`. A scalar in host memory gets the shape `dims`. If `dims` is None, shapes stay.
    """
    if port.on_host:
        array = array.copy()
        return array[1:] if batches else array.reshape(dims if dims is not None else array.shape)
    if not port.dims and dims is not None and isinstance(array, np.ndarray):
        return array.reshape(dims)
    return array
