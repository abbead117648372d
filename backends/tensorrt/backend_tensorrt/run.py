"""One batch: copies, execution, copies back.

feed ─► [Runner.start] ─► [Runner.finish] ─► outputs.

    copy stream     inputs of batch 1 │ inputs of batch 2 │ …
    compute stream                    │ batch 1           │ batch 2 │ …
    output stream                                         │ outputs of batch 1 │ …   (or the compute stream)

Nothing here waits but `finish`, so that a second batch can be started while the first computes.
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
from core.errors import CoreError
from core.native.gather import gather

logger = logging.getLogger("core")

Shape = tuple[int, ...]


@dataclass
class Started:
    """A batch under way. What its outputs will be, once `slot.done` has come to pass."""

    slot: Slot
    results: dict[str, Any] = field(default_factory=dict)


class Runner:
    """Runs batches of one instance, whose GPU is the current device. `start` from one thread, `finish` from
    one other.

    specs   the CUDA graphs that are captured
    names   of its optimization profiles, as config.pbtxt has them
    Raises CoreError if the engine cannot be run so.
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
        # The largest first: a buffer that grows takes the graphs with it.
        for spec in sorted(specs, key=lambda each: each.size, reverse=True):
            for slot in self.slots:
                self._warm(slot, spec)

    def _warm(self, slot: Slot, spec: GraphSpec) -> None:
        """Capture a graph before the first batch needs it."""
        if spec not in self._specs:  # it could not be captured with another slot
            return
        try:
            profile = profiles.chosen(self._profiles, spec.shapes, {}, self._model)
        except (
            CoreError
        ) as error:  # a size that nobody asked for by name must not keep the model away
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
        """Give the device all of a batch's work. Raises CoreError, context.Failure, and what CUDA raises."""
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
        results = {
            name: self._result(allocations[name], rows, name in staying, fresh.get(name))
            for name in wanted
        }
        slot.done.record(self._outputs)
        return Started(slot, results)

    def _graph_for(self, feed: Feed) -> GraphSpec | None:
        """The graph that a batch runs with. Only whole rows of what is on the device can be filled up."""
        spec = graphs.chosen(self._specs, feed.shapes) if self._specs else None
        if spec is None:
            return None
        for name, each in feed.inputs.items():
            if not each.on_host and spec.shapes[name][1:] != each.shape[1:]:
                return None
        return spec

    def _staged(self, slot: Slot, each: Input, shape: Shape, *, fixed: bool) -> int:
        """Start to copy an input to the device; the address at which the engine finds it.

        shape   that the engine runs with, larger than the input's with a graph that has a lower bound
        fixed   whether it must be in the slot's buffer
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
        """The address of host memory with all of an input, filled up to `shape`."""
        grows = shape != each.shape
        if not grows and self._coalesces and (address := contiguous(each.parts)):
            return address
        if not grows and not self._settings.pinned_inputs and len(each.parts) == 1:
            return address_of(each.parts[0].source)
        pinned = self._settings.pinned_inputs
        staging = slot.staging(each.port.name, size) if pinned else np.empty(max(1, size), np.uint8)
        slot.held.append(staging)
        staging = staging[:size]
        _join(each, staging[: each.size])
        if grows and shape[1:] == each.shape[1:]:
            staging[each.size :] = 0
        elif grows:
            assert each.port.dtype is not None
            staging[:] = padded(staging[: each.size].copy(), each.shape, shape, each.port.dtype)
        return int(staging.ctypes.data) if size else 0

    def _fresh(self, context: Context, staying: Collection[str]) -> dict[str, Memory]:
        """Memory of their own for outputs that stay on the device, where their size is known before."""
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
            context.enqueue(
                self._compute
            )  # TensorRT prepares itself for new shapes, outside of a graph
            self._capture(slot, context, profile, spec, allocations)

    def _capture(
        self,
        slot: Slot,
        context: Context,
        profile: int,
        spec: GraphSpec,
        allocations: dict[str, Allocation],
    ) -> None:
        """Keep a graph of what was just enqueued. An engine that cannot be captured runs without."""
        reason = "the shapes of its outputs depend on its inputs' values"
        graph = None
        if all(each.allocator is None for each in allocations.values()):
            try:
                graph = self._captured(context)
            except Exception as error:  # of CUDA or TensorRT, by many names
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
        finally:  # the stream must leave its capture, also a broken one
            graph = self._compute.end_capture()
        return graph

    def _result(
        self, each: Allocation, rows: int, stays: bool, fresh: Memory | None
    ) -> np.ndarray | OnDevice:
        """Start to copy an output; the array that has it once the slot is done.

        rows   of the batch if the engine may have run with more, else 0
        """
        port, shape = each.port, each.shape
        assert port.dtype is not None
        if rows and not port.on_host:
            shape = (rows, *shape[1:])
        if each.host is not None:
            return each.host  # the engine writes it: read when done
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
        """Wait for a batch; its outputs. Raises what went wrong on the device, here or before."""
        started.slot.done.synchronize()
        started.slot.held = []
        return started.results

    def settle(self) -> None:
        """Wait until the device no longer uses what a batch that could not be started was given."""
        for stream in (self._inputs, self._compute, self._outputs):
            try:
                stream.synchronize()
            except Exception as error:
                logger.debug("model '%s': %s", self._model, error)

    def close(self) -> None:
        """Give back streams, contexts and memory."""
        self.settle()
        self.slots.clear()
        self._contexts.clear()


def _join(each: Input, target: np.ndarray) -> None:
    """Put an input's parts, all in host memory, behind one another."""
    gather([part.source for part in each.parts if part.size], target)


def as_clients_see(port: Port, array: Any, batches: bool, dims: Shape | None) -> Any:
    """An output of the engine for clients: a scalar as one element, a shape tensor without the batch."""
    if port.on_host:
        array = array.copy()
        return array[1:] if batches else array.reshape(dims if dims is not None else array.shape)
    if not port.dims and dims is not None and isinstance(array, np.ndarray):
        return array.reshape(dims)
    return array
