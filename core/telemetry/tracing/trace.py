"""Trace: the times of one request's steps, and its tensors."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from core import dtypes
from core.errors import CoreError
from core.response import InferenceResponse
from core.telemetry.tracing import context as contexts
from core.telemetry.tracing.context import SpanContext
from core.telemetry.tracing.settings import TENSORS, TIMESTAMPS
from core.tensor import Tensor

# Chronological order of events; it sorts events with the same time.
_ORDER = {
    name: number
    for number, name in enumerate(
        (
            "HTTP_RECV_START",
            "HTTP_RECV_END",
            "GRPC_WAITREAD_START",
            "GRPC_WAITREAD_END",
            "REQUEST_START",
            "QUEUE_START",
            "TENSOR_QUEUE_INPUT",
            "CACHE_HIT_LOOKUP_START",
            "CACHE_HIT_LOOKUP_END",
            "COMPUTE_START",
            "TENSOR_BACKEND_INPUT",
            "COMPUTE_INPUT_END",
            "COMPUTE_OUTPUT_START",
            "TENSOR_BACKEND_OUTPUT",
            "COMPUTE_END",
            "INFER_RESPONSE_COMPLETE",
            "REQUEST_END",
            "HTTP_SEND_START",
            "HTTP_SEND_END",
            "GRPC_SEND_START",
            "GRPC_SEND_END",
        )
    )
}
_BACKEND_OUTPUT = "TENSOR_BACKEND_OUTPUT"
_OF_A_BACKEND = _ORDER["COMPUTE_INPUT_END"]  # the position of a name that is not in the list


class Trace:
    """The trace of one request. Loop thread only, but for `carrier`, and for `entries` once it has finished.

    id              unique number in the server, from 1 on
    request_id      id that the client gave the request, "" for none
    level           the kinds of events that are kept: any of TIMESTAMPS and TENSORS, or neither
    left            called with the trace when its last holder has released it; not for a child
    parent          the trace of the request that made this one
    root            span of the whole request; None in a trace without spans and in a child
    remote          span of the client, the root's parent; None if the client sent none
    context         span of the model; None in a trace without spans or without TIMESTAMPS
    parent_context  parent of `context`
    error           error of the request, "" for none
    began_ns        time of creation, on the clock of `clock_ns`

    A trace and its children, at any depth, finish together; the root trace keeps the children.
    """

    def __init__(
        self,
        id: int,
        model_name: str,
        model_version: int,
        request_id: str,
        level: tuple[str, ...],
        *,
        left: Callable[[Trace], None] | None = None,
        parent: Trace | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ):
        self.id = id
        self.model_name = model_name
        self.model_version = model_version
        self.request_id = request_id
        self.parent_id = 0 if parent is None else parent.id
        self._level = level
        self._left = left
        self._clock_ns = clock_ns
        self._events: list[tuple[int, str, Tensor | None]] = []
        self.children: list[Trace] = []  # at any depth; only in the root trace
        self._executed = False  # whether outputs of an execution are kept
        self.began_ns = clock_ns()
        self.error = ""
        self.root: SpanContext | None = None
        self.remote: SpanContext | None = None
        self.context: SpanContext | None = None
        self.parent_context: SpanContext | None = None
        self._first: Trace = self if parent is None else parent._first
        self._holders = 0
        self._gone = False
        if parent is not None:
            self._first.children.append(self)
            if parent.context is not None:
                self.parent_context = parent.context
                self.context = parent.context.child()
        self.hold()

    def begin_spans(self, remote: SpanContext | None) -> None:
        """Set `remote`, `root` and, with TIMESTAMPS, `context`. Call it before other methods."""
        self.remote = remote
        self.root = contexts.first() if remote is None else remote.child()
        if TIMESTAMPS in self._level:
            self.parent_context = self.root
            self.context = self.root.child()

    def carrier(self) -> str | None:
        """Return the context for requests of the model: JSON with traceparent and an optional tracestate.

        None without `context`.
        """
        return None if self.context is None else self.context.carrier()

    def child(self, id: int, model_name: str, model_version: int, request_id: str) -> Trace:
        """Return a trace for a request that this trace's request makes."""
        return Trace(
            id,
            model_name,
            model_version,
            request_id,
            self._level,
            parent=self,
            clock_ns=self._clock_ns,
        )

    def stamp(self, name: str, at_ns: int = 0) -> None:
        """Record an event at `at_ns` of the same clock, 0 for now; do nothing without level TIMESTAMPS."""
        if TIMESTAMPS in self._level:
            self._events.append((at_ns or self._clock_ns(), name, None))

    def span(self, name: str, start_ns: int, end_ns: int) -> None:
        """Record an activity as the events <name>_START and <name>_END, as `stamp` does."""
        self.stamp(f"{name}_START", start_ns)
        self.stamp(f"{name}_END", end_ns)

    def tensors(
        self, activity: str, tensors: Iterable[Tensor], shared: bool = False, at_ns: int = 0
    ) -> None:
        """Record tensors of a request or a response under `activity`; do nothing without level TENSORS.

        shared   the tensors are in memory that may change: the trace keeps copies
        """
        if TENSORS not in self._level:
            return
        if activity == _BACKEND_OUTPUT:
            self._executed = True
        at_ns = at_ns or self._clock_ns()
        for tensor in tensors:
            # A new object: the thread that writes the trace must not share it with the pipeline.
            kept = (
                Tensor(tensor.name, tensor.dtype, tensor.shape, raw=bytes(tensor.raw))
                if shared
                else tensor.reshaped(tensor.shape)
            )
            self._events.append((at_ns, activity, kept))

    def hold(self) -> None:
        """Keep this trace, its root and all traces below it open for more events, until `release`.

        Call it in the iteration of the event loop that creates the trace, or while another holder keeps it.
        """
        self._first._holders += 1

    def release(self) -> None:
        """End one `hold`. After the last one, the trace finishes in the next iteration of the loop."""
        first = self._first
        first._holders -= 1
        if not first._holders:
            # Not at once: a caller whose request is answered already may still call `hold`.
            asyncio.get_running_loop().call_soon(first._leave)

    def answered(self, item: InferenceResponse | CoreError) -> None:
        """Record one item that goes to the caller: an error, or outputs that no execution has recorded."""
        if isinstance(item, CoreError):
            self.error = item.message
        elif not self._executed:  # the response of an ensemble or of the cache
            self.tensors(_BACKEND_OUTPUT, item.outputs)
            self._executed = False  # `tensors` has set it, but no execution recorded these
        if self._first is self:  # only the client's request has this event, no request of a model
            self.stamp("INFER_RESPONSE_COMPLETE")

    def end(self) -> None:
        """Record that the request has got its last response, and release the creator's `hold`."""
        self.stamp("REQUEST_END")
        self.release()

    def _leave(self) -> None:
        if not self._holders and not self._gone and self._left is not None:
            self._gone = True
            self._left(self)

    def entries(self) -> list[dict[str, Any]]:
        """Return the objects of the trace file for this root trace and all below it, each by time."""
        return [entry for trace in (self, *self.children) for entry in trace._own_entries()]

    def stamps(self) -> list[tuple[int, str]]:
        """Return (time in ns, name) of each event without a tensor, in order of time."""
        return [(ns, name) for ns, name, tensor in self._sorted() if tensor is None]

    def _sorted(self) -> list[tuple[int, str, Tensor | None]]:
        return sorted(self._events, key=lambda e: (e[0], _ORDER.get(e[1], _OF_A_BACKEND)))

    def _own_entries(self) -> list[dict[str, Any]]:
        head: dict[str, Any] = {
            "id": self.id,
            "model_name": self.model_name,
            "model_version": self.model_version,
        }
        if self.request_id:
            head["request_id"] = self.request_id
        if self.parent_id:
            head["parent_id"] = self.parent_id
        entries = [head]
        for ns, name, tensor in self._sorted():
            if tensor is None:
                entries.append({"id": self.id, "timestamps": [{"name": name, "ns": ns}]})
            else:
                entries.append({"id": self.id, "activity": name, "tensor": shown(tensor)})
        return entries


def shown(tensor: Tensor) -> dict[str, str]:
    """Return a tensor in the form of trace files: all values are text, lists are separated by commas."""
    return {
        "name": tensor.name,
        "data": ",".join(_elements(tensor)),
        "shape": ",".join(map(str, tensor.shape)),
        "dtype": tensor.dtype.name,
    }


def _elements(tensor: Tensor) -> Iterable[str]:
    flat = tensor.array.reshape(-1)
    if tensor.dtype is dtypes.BYTES:
        return (json.dumps(each.decode(errors="replace"), ensure_ascii=False) for each in flat)
    if tensor.dtype is dtypes.BOOL:
        return ("1" if each else "0" for each in flat)
    if tensor.dtype is dtypes.BF16:
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return (str(each).removesuffix(".0") for each in flat)
