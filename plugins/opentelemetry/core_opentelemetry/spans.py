"""Spans: a trace and its children in the form of OpenTelemetry.

Trace ─► [spans_of] ─► Span, Span …  ─► SpanExporter.  Names, nesting and attributes are those of Triton:

    InferRequest                     the request at its frontend
    └─ <model>                       one for the request; below it, one for each model that it calls
       ├─ compute                    its execution
       └─ CACHE_HIT_LOOKUP …         any other activity with a timestamp …_START and one …_END
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.telemetry.tracing.context import SpanContext

if TYPE_CHECKING:
    from core.telemetry.tracing.trace import Trace

ROOT = "InferRequest"
_COMPUTE = "compute"
_START, _END = "_START", "_END"
# Prefixes of the frontends' timestamps, which belong to the span of the whole request.
_AT_THE_FRONTEND = ("HTTP_", "GRPC_", "INFER_RESPONSE_COMPLETE")
# Events within a span, although their names end like a start or an end.
_POINTS = frozenset(("QUEUE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START"))
_NAMES = {"COMPUTE": _COMPUTE}

# A model may send a million responses; collectors refuse messages of more than a few megabytes.
MOST_EVENTS = 1000

Stamp = tuple[int, str]  # ns, name
Attribute = str | int | float | tuple[str, ...]


@dataclass
class Span:
    """One span; times are time.time_ns().

    context      its ids
    parent       ids of the span around it; None for none
    end_ns       0 before the end
    events       name and time of each, in order; after `ended` at most MOST_EVENTS: the first ones and last
    attributes   name → value
    error        error of the request, "" for none
    from_client  whether the parent is a span of the client
    """

    name: str
    context: SpanContext
    parent: SpanContext | None
    start_ns: int
    end_ns: int = 0
    events: list[tuple[str, int]] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    error: str = ""
    from_client: bool = False

    def ended(self, end_ns: int) -> Span:
        """Set the end, drop events beyond MOST_EVENTS except the last one, and return the span itself."""
        self.end_ns = end_ns
        if len(self.events) > MOST_EVENTS:
            self.events = [*self.events[: MOST_EVENTS - 1], self.events[-1]]
        return self


def spans_of(first: Trace, to_wall_ns: int) -> list[Span]:
    """Return the spans of a finished trace and its children; the last is the root span, of the whole request.

    first        trace of the request, not a child; its `root` is set
    to_wall_ns   what is added to times of the trace's clock to make them time.time_ns()
    """
    assert first.root is not None
    spans: list[Span] = []
    for trace in (first, *first.children):
        if trace.context is not None:
            inner = [stamp for stamp in trace.stamps() if not _outer(stamp)]
            spans += _of_model(trace, trace.context, inner, to_wall_ns)
    outer = [stamp for stamp in first.stamps() if _outer(stamp)]
    times = [ns + to_wall_ns for ns, _ in outer]
    for span in spans:
        times += (span.start_ns, span.end_ns)
    times = times or [first.began_ns + to_wall_ns]
    # The server receives a request before it creates the trace: the span begins at the earliest timestamp.
    root = Span(ROOT, first.root, first.remote, min(times))
    root.events += ((name, ns + to_wall_ns) for ns, name in outer)
    root.error, root.from_client = first.error, first.remote is not None
    spans.append(root.ended(max(times)))
    return spans


def _outer(stamp: Stamp) -> bool:
    return stamp[1].startswith(_AT_THE_FRONTEND)


def _of_model(
    trace: Trace, context: SpanContext, stamps: list[Stamp], to_wall_ns: int
) -> list[Span]:
    """Return the span of one model's execution, and the spans within it, which come first; [] without stamps.

    context   ids for the model's span
    stamps    times and names of its trace, in order, without those of the frontend. The first one begins the
              model's span, REQUEST_END or the last one ends it
    """
    spans: list[Span] = []
    open_ones: list[Span] = []
    for ns, name in stamps:
        at_ns = ns + to_wall_ns
        if not open_ones:
            if spans:  # after the end of the model's span
                continue
            open_ones.append(_model_span(trace, context, at_ns))
        elif name.endswith(_START) and name not in _POINTS:
            parent = open_ones[-1].context
            stem = name.removesuffix(_START)
            open_ones.append(Span(_NAMES.get(stem, stem), parent.child(), parent, at_ns))
        open_ones[-1].events.append((name, at_ns))
        if name == "REQUEST_END":
            while open_ones:
                spans.append(open_ones.pop().ended(at_ns))
        elif name.endswith(_END) and name not in _POINTS and len(open_ones) > 1:
            spans.append(open_ones.pop().ended(at_ns))
    while open_ones:
        spans.append(open_ones.pop().ended(at_ns))
    return spans


def _model_span(trace: Trace, context: SpanContext, at_ns: int) -> Span:
    span = Span(trace.model_name, context, trace.parent_context, at_ns)
    span.attributes = {
        "triton.model_name": trace.model_name,
        "triton.model_version": trace.model_version,
        "triton.trace_id": trace.id,
        "triton.trace_parent_id": trace.parent_id,
    }
    # Plugins add attributes to the dictionary of a trace, such as those of a generation.
    span.attributes |= vars(trace).get("attributes", {})
    if trace.request_id:
        span.attributes["triton.request_id"] = trace.request_id
    span.error = trace.error
    return span
