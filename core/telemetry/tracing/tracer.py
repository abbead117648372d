"""Tracer: the trace settings of a server in effect.

Server.infer ─► [Tracer] ─► the chain of a model version.  A traced request gets its trace here and
loses it with its last answer; all others only pass. Traces leave for files, or for an exporter.
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

_FLUSH_S = (1.0, 5.0)  # the shortest and the longest time that an exporter gets for its last traces
_GRACE_S = 1.0  # what it may take longer

Handler = Callable[[InferenceRequest], Reply]


class Tracer:
    """Decides which requests are traced, and hands finished traces on. Loop thread only.

    on             whether a request may be traced, or is being: all that is looked at for each request
                   while there are no traces
    takes_context  whether the context of a client makes a request traced: what `context` is for

    suffix     what the paths of trace files get behind them
    exporter   takes the traces; None for trace files

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
        # Of the command line.
        self._start = TraceSettings.of(options, exporter.shown if exporter is not None else None)
        self._changes: dict[str, Any] = {}  # of the server's settings, by clients
        self._model_changes: dict[str, dict[str, Any]] = {}
        self._losses = Losses(logger.error, "traces are")
        self.takes_context = exporter is not None and exporter.takes_context
        self._keeps_tensors = exporter is None or exporter.takes_tensors
        self._sampler = Sampler(self._start, self._files, takes_context=self.takes_context)
        self._model_samplers: dict[str, Sampler] = {}  # of models with settings of their own
        self._open = 0  # traces that have begun and not left
        self.on = self._sampler.active
        if self._start.level and not self._start.may_trace:
            logger.warning("no trace is written: there is no --trace-config=triton,file=<path>")
        self._warn_of_tensors(self._start)

    # settings -----------------------------------------------------------

    def settings(self, model: str = "") -> dict[str, Any]:
        """Those of the server, or those that hold for a model, by their names in the protocol.

        trace_count is how many are still to be traced.
        """
        sampler = self._model_samplers.get(model, self._sampler)
        return sampler.settings.as_dict(sampler.remaining)

    def change(self, changes: Mapping[str, Any], model: str = "") -> dict[str, Any]:
        """Change settings of the server, or of a model; returns all that hold then.

        changes   None clears a setting: a model's follows the server's, the server's the command line
        Raises CoreError for a change that cannot be; then nothing is changed.
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
        """Let what has been changed hold: a sampler for the server, and for each model of its own."""
        if not model:
            self._sampler = self._sampler_for(settings, self._sampler, changed, self._changes)
        samplers = {}
        for name, own in self._model_changes.items():
            before = self._model_samplers.get(name)
            just = changed if model in ("", name) else set()
            if not model:  # what a model has of its own did not change with the server's
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
        """The one before if nothing was said about it, else another, which counts from the start; but a
        count that clients have set, in `own`, goes on when they change something else."""
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
            self._export(self._exporter, trace)
        self._open -= 1
        if not self._open:
            self._look()

    def _export(self, exporter: TraceExporter, trace: Trace) -> None:
        """An exporter that fails costs its trace, and one line in the log per minute."""
        try:
            exporter.export(trace)
        except Exception as error:
            reason = f"{type(exporter).__name__} failed: {type(error).__name__}: {error}"
            self._losses.add(reason, 1)

    # requests --------------------------------------------------------------

    def context(self, traceparent: str | None, tracestates: Iterable[str]) -> SpanContext | None:
        """What the headers of a client say, as `request.trace` of a request that goes to `infer`; None for
        nothing, and for what is no context.

        tracestates   every header of that name
        """
        if not self.takes_context or traceparent is None:
            return None
        return contexts.parsed(traceparent, ",".join(tracestates))

    def infer(self, request: InferenceRequest, name: str, version: int, handler: Handler) -> Reply:
        """handler(request), traced if it is its turn, or if the request brings a trace or a context.

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
        trace = Trace(
            next(self._ids),
            name,
            version,
            request.id,
            self._level_of(sampler.settings),
            left=partial(self._left, sampler),
            clock_ns=self._clock_ns,
        )
        if self.takes_context:
            trace.begin_spans(remote)
        return _traced(trace, request, handler)

    def _level_of(self, settings: TraceSettings) -> tuple[str, ...]:
        """What a trace keeps: without tensors if the exporter does not take them."""
        kept = (TIMESTAMPS,) if TIMESTAMPS in settings.level else ()
        return settings.level if self._keeps_tensors else kept

    def step(self, request: InferenceRequest, name: str, version: int, handler: Handler) -> Reply:
        """The same for a request that came from a traced one, whose trace it brings."""
        parent: Trace = request.trace
        return _traced(parent.child(next(self._ids), name, version, request.id), request, handler)

    async def close(self, timeout_s: float = _FLUSH_S[1]) -> None:
        """Write or send what is complete.

        timeout_s   for an exporter, which gets at least 1 s and at most 5 s in any case
        """
        await asyncio.sleep(0)  # traces that ended in this turn of the loop leave in the next
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
