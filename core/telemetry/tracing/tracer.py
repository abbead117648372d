"""Tracer: the trace settings of a server in effect.

Server.infer ─► [Tracer] ─► the chain of a model version.  A traced request gets its trace here and
loses it with its last answer; all others only pass.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from core.errors import CoreError
from core.options import Options
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core.telemetry.tracing.sampler import Sampler
from core.telemetry.tracing.settings import OPENTELEMETRY, TraceSettings, parsed
from core.telemetry.tracing.trace import Trace
from core.telemetry.tracing.writer import TraceFiles

logger = logging.getLogger("core")

Handler = Callable[[InferenceRequest], Reply]


class Tracer:
    """Loop thread only.

    on   whether a request may be traced, or is being: all that is looked at for each request while
         there are no traces

    suffix   what the paths of trace files get behind them
    """

    def __init__(
        self,
        options: Options,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        *,
        suffix: str = "",
    ):
        self._clock_ns = clock_ns
        self._ids = itertools.count(1)
        self._files = TraceFiles(suffix)
        self._start = TraceSettings.of(options)  # of the command line
        self._changes: dict[str, Any] = {}  # of the server's settings, by clients
        self._model_changes: dict[str, dict[str, Any]] = {}
        self._sampler = Sampler(self._start, self._files)
        self._model_samplers: dict[str, Sampler] = {}  # of models with settings of their own
        self._open = 0  # traces that have begun and not left
        self.on = self._sampler.active
        if self._start.mode == OPENTELEMETRY:
            logger.warning(
                "--trace-config=mode=%s has no effect: only mode triton writes traces",
                OPENTELEMETRY,
            )
        elif self._start.level and not self._start.file:
            self._warn_no_file()

    # settings -----------------------------------------------------------

    def settings(self, model: str = "") -> dict[str, Any]:
        """Those of the server, or those that hold for a model, by their names in the protocol."""
        return self._model_samplers.get(model, self._sampler).settings.as_dict()

    def change(self, changes: Mapping[str, Any], model: str = "") -> dict[str, Any]:
        """Change settings of the server, or of a model; returns all that hold then.

        changes   None clears a setting: a model's follows the server's, the server's the command line
        Raises CoreError for a change that cannot be; then nothing is changed.
        """
        fields = parsed(changes)
        own = self._model_changes.setdefault(model, {}) if model else self._changes
        for name, value in fields.items():
            if value is None:
                own.pop(name, None)
            else:
                own[name] = value
        if model and not own:
            del self._model_changes[model]
        self._apply(set(fields), model)
        if fields.get("level") and self._start.mode != OPENTELEMETRY and not self._start.file:
            self._warn_no_file()
        return self.settings(model)

    def _apply(self, changed: set[str], model: str) -> None:
        """Let what has been changed hold: a sampler for the server, and for each model of its own."""
        settings = replace(self._start, **self._changes)
        if not model:
            self._sampler = self._sampler_for(settings, self._sampler, changed)
        samplers = {}
        for name, own in self._model_changes.items():
            before = self._model_samplers.get(name)
            just = changed if model in ("", name) else set()
            if not model:
                just = just - set(
                    own
                )  # what a model has of its own did not change with the server's
            samplers[name] = self._sampler_for(replace(settings, **own), before, just)
        for name, sampler in self._model_samplers.items():
            if name not in samplers:
                sampler.retire()
        self._model_samplers = samplers
        self._look()

    def _sampler_for(
        self, settings: TraceSettings, before: Sampler | None, changed: set[str]
    ) -> Sampler:
        """The one before if nothing was said about it, else another, which counts from the start."""
        if before is not None:
            if not changed and settings == before.settings:
                return before
            before.retire()
        return Sampler(settings, self._files)

    def _look(self) -> None:
        samplers = (self._sampler, *self._model_samplers.values())
        self.on = self._open > 0 or any(sampler.active for sampler in samplers)

    def _left(self, sampler: Sampler, trace: Trace) -> None:
        sampler.left(trace)
        self._open -= 1
        if not self._open:
            self._look()

    def _warn_no_file(self) -> None:
        logger.warning("no trace is written: there is no --trace-config=triton,file=<path>")

    # requests --------------------------------------------------------------

    def infer(self, request: InferenceRequest, name: str, version: int, handler: Handler) -> Reply:
        """handler(request), traced if it is its turn, or if the request brings a trace.

        name, version   of the model
        """
        if request.trace is not None:
            return self.step(request, name, version, handler)
        sampler = self._model_samplers.get(name, self._sampler)
        if not sampler.take():
            return handler(request)
        self._open += 1
        trace = Trace(
            next(self._ids),
            name,
            version,
            request.id,
            sampler.settings.level,
            left=partial(self._left, sampler),
            clock_ns=self._clock_ns,
        )
        return _traced(trace, request, handler)

    def step(self, request: InferenceRequest, name: str, version: int, handler: Handler) -> Reply:
        """The same for a request that came from a traced one, whose trace it brings."""
        parent: Trace = request.trace
        return _traced(parent.child(next(self._ids), name, version, request.id), request, handler)

    async def close(self) -> None:
        """Write what is complete. A second call does nothing."""
        await asyncio.sleep(0)  # traces that ended in this turn of the loop leave in the next
        for sampler in (self._sampler, *self._model_samplers.values()):
            sampler.retire()
        await self._files.close()


def _traced(trace: Trace, request: InferenceRequest, handler: Handler) -> Reply:
    request.trace = trace
    trace.stamp("REQUEST_START")
    trace.tensors("TENSOR_QUEUE_INPUT", request.inputs.values(), request.shared)
    try:
        inner = handler(request)
    except CoreError:
        trace.end()
        raise
    trace.stamp("QUEUE_START", request.arrival_ns)
    outer = Reply(request)

    def arrived(item: InferenceResponse | CoreError | None, final: bool) -> None:
        if item is not None:
            trace.stamp("INFER_RESPONSE_COMPLETE")
        if final:
            trace.end()
        outer.send(item, final)

    inner.listen(arrived)
    return outer
