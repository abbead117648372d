"""Tracer: apply the trace settings of a server.

Models.infer ─► [Tracer] ─► the chain of a model version.  The Tracer creates the trace of a traced request
and ends it with the last response. Finished traces go to files or to an exporter.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from core.errors import CoreError
from core.options import Options
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core.telemetry.losses import Losses
from core.telemetry.tracing import context as contexts
from core.telemetry.tracing.context import SpanContext
from core.telemetry.tracing.exporter import TraceExporter
from core.telemetry.tracing.sampler import Sampler
from core.telemetry.tracing.settings import TENSORS, TIMESTAMPS, TraceSettings, parsed
from core.telemetry.tracing.trace import Trace
from core.telemetry.tracing.writer import TraceFiles

logger = logging.getLogger("core")

_FLUSH_S = (1.0, 5.0)  # the shortest and the longest time limit of an exporter for its last traces
_GRACE_S = 1.0  # tolerance for that limit

Handler = Callable[[InferenceRequest], Reply]


class Tracer:
    """Choose the requests to trace, and pass finished traces on. Call from the loop thread only.

    on             whether a request may be traced, or is being traced; the only check for each request while
                   tracing is off
    takes_context  whether each request with the context of its client is traced, unless tracing is off

    suffix     appended to the paths of trace files
    exporter   receives the traces; None for trace files

    Raises CoreError(INVALID) for invalid settings.
    """

    def __init__(
        self,
        options: Options,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        *,
        suffix: str = "",
        exporter: TraceExporter | None = None,
    ):
        self._clock_ns = clock_ns
        self._ids = itertools.count(1)
        self._files = TraceFiles(suffix)
        self._exporter = exporter
        # Settings of the command line.
        self._start = TraceSettings.of(options, exporter.shown if exporter is not None else None)
        self._changes: dict[str, Any] = {}  # changes of clients to the server's settings
        self._model_changes: dict[str, dict[str, Any]] = {}
        self._losses = Losses(logger.error, "traces are")
        self.takes_context = exporter is not None and exporter.takes_context
        self._keeps_tensors = exporter is None or exporter.takes_tensors
        self._sampler = Sampler(self._start, self._files, takes_context=self.takes_context)
        self._model_samplers: dict[str, Sampler] = {}  # of models with their own settings
        self._open = 0  # traces that have begun and not finished
        self.on = self._sampler.active
        if self._start.level and not self._start.may_trace:
            logger.warning("no trace is written: there is no --trace-config=triton,file=<path>")
        self._warn_of_tensors(self._start)

    # settings -----------------------------------------------------------

    def settings(self, model: str = "") -> dict[str, Any]:
        """Return the settings of the server, or those in effect for a model, by their names in the protocol.

        trace_count is the number of traces that may still begin.
        """
        sampler = self._model_samplers.get(model, self._sampler)
        return sampler.settings.as_dict(sampler.remaining)

    def change(self, changes: Mapping[str, Any], model: str = "") -> dict[str, Any]:
        """Change settings of the server, or of a model; return all settings in effect then.

        changes   None clears a setting: a model then uses the server's, the server the command line's
        Raises CoreError for an invalid change; then nothing changes.
        """
        fields = parsed(changes)
        own = dict(self._model_changes.get(model, {}) if model else self._changes)
        for name, value in fields.items():
            if value is None:
                own.pop(name, None)
            else:
                own[name] = value
        of_server = replace(self._start, **(self._changes if model else own))
        if not model:
            of_server.check()
            self._changes = own
        elif own:
            replace(of_server, **own).check()
            self._model_changes[model] = own
        else:
            self._model_changes.pop(model, None)
        if "level" in fields:
            self._warn_of_tensors(replace(of_server, **own))
        self._apply(of_server, set(fields), model)
        return self.settings(model)

    def _apply(self, settings: TraceSettings, changed: set[str], model: str) -> None:
        """Update the samplers of the server (unless `model`) and of models with settings of their own."""
        if not model:
            self._sampler = self._sampler_for(settings, self._sampler, changed, self._changes)
        samplers = {}
        for name, own in self._model_changes.items():
            before = self._model_samplers.get(name)
            just = changed if model in ("", name) else set()
            if not model:  # a change of the server's settings does not change the model's own
                just = just - set(own)
            samplers[name] = self._sampler_for(replace(settings, **own), before, just, own)
        for name, sampler in self._model_samplers.items():
            if name not in samplers:
                sampler.retire()
        self._model_samplers = samplers
        self._look()

    def _sampler_for(
        self,
        settings: TraceSettings,
        before: Sampler | None,
        changed: set[str],
        own: Mapping[str, Any],
    ) -> Sampler:
        """Return `before` if nothing changed, else retire it and return a new sampler that counts from 0.

        A count that clients have set (in `own`) continues from the one before if they change another setting.
        """
        remaining: int | None = None
        if before is not None:
            if not changed and settings == before.settings:
                return before
            before.retire()
            if "count" in own and "count" not in changed:
                remaining = before.remaining
        return Sampler(settings, self._files, remaining, takes_context=self.takes_context)

    def _warn_of_tensors(self, settings: TraceSettings) -> None:
        if TENSORS in settings.level and not self._keeps_tensors:
            logger.warning("Tensor level tracing is not supported by the mode: %s", settings.mode)

    def _look(self) -> None:
        samplers = (self._sampler, *self._model_samplers.values())
        self.on = self._open > 0 or any(sampler.active for sampler in samplers)

    def _left(self, sampler: Sampler, trace: Trace) -> None:
        if self._exporter is None:
            sampler.left(trace)
        else:
            try:
                self._exporter.export(trace)
            except Exception as error:  # the trace is lost; the log reports it once per minute
                name = type(self._exporter).__name__
                self._losses.add(f"{name} failed: {type(error).__name__}: {error}", 1)
        self._open -= 1
        if not self._open:
            self._look()

    # requests --------------------------------------------------------------

    def context(self, traceparent: str | None, tracestates: Iterable[str]) -> SpanContext | None:
        """Return the context in the headers of a client, to set as `request.trace` before `infer`.

        tracestates   the values of all headers of that name
        None without a traceparent, with an invalid one, and if `takes_context` is False.
        """
        if not self.takes_context or traceparent is None:
            return None
        return contexts.parsed(traceparent, ",".join(tracestates))

    def infer(self, request: InferenceRequest, name: str, version: int, handler: Handler) -> Reply:
        """Return handler(request), traced if the request has a trace already, or if `Sampler.take` says so.

        name, version   of the model
        """
        remote: SpanContext | None = None
        if request.trace is not None:
            if not isinstance(request.trace, SpanContext):
                return self.step(request, name, version, handler)
            remote, request.trace = request.trace, None
        sampler = self._model_samplers.get(name, self._sampler)
        if not sampler.take(remote is not None):
            return handler(request)
        self._open += 1
        level = sampler.settings.level
        if not self._keeps_tensors:
            level = (TIMESTAMPS,) if TIMESTAMPS in level else ()
        trace = Trace(
            next(self._ids),
            name,
            version,
            request.id,
            level,
            left=partial(self._left, sampler),
            clock_ns=self._clock_ns,
        )
        if self.takes_context:
            trace.begin_spans(remote)
        return _traced(trace, request, handler)

    def step(self, request: InferenceRequest, name: str, version: int, handler: Handler) -> Reply:
        """Return handler(request), traced in a child of `request.trace`, the trace of the outer request."""
        parent: Trace = request.trace
        return _traced(parent.child(next(self._ids), name, version, request.id), request, handler)

    async def close(self, timeout_s: float = _FLUSH_S[1]) -> None:
        """Write or send the finished traces. An exception of the exporter is only logged.

        timeout_s   time limit of an exporter; values below 1 s count as 1 s, above 5 s as 5 s
        """
        await asyncio.sleep(0)  # traces that ended in this iteration of the loop finish in the next
        for sampler in (self._sampler, *self._model_samplers.values()):
            sampler.retire()
        await self._files.close()
        if self._exporter is not None:
            least, most = _FLUSH_S
            bound_s = min(most, max(least, timeout_s))
            try:
                await asyncio.wait_for(self._exporter.close(bound_s), bound_s + _GRACE_S)
            except Exception as error:
                name = type(self._exporter).__name__
                logger.error("%s lost its last traces: %s: %s", name, type(error).__name__, error)
            self._losses.flush()


def _traced(trace: Trace, request: InferenceRequest, handler: Handler) -> Reply:
    request.trace = trace
    trace.stamp("REQUEST_START")
    trace.tensors("TENSOR_QUEUE_INPUT", request.inputs.values(), request.shared)
    try:
        inner = handler(request)
    except CoreError as error:
        trace.error = error.message
        trace.end()
        raise
    trace.stamp("QUEUE_START", request.arrival_ns)
    outer = Reply(request)

    def arrived(item: InferenceResponse | CoreError | None, final: bool) -> None:
        if item is not None:
            trace.answered(item)
        if final:
            trace.end()
        outer.send(item, final)

    inner.listen(arrived)
    return outer
