"""A tracer as a server makes it, requests that it may trace, and an exporter that keeps traces."""

import asyncio

from core.control.settings import open_exporter
from core.options import Options
from core.request import InferenceRequest
from core.response import Reply
from core.telemetry.tracing import TraceExporter, Tracer

ON = [("level", "TIMESTAMPS"), ("rate", "1")]


def new(config):
    """A tracer as a server makes it."""
    options = Options.defaults(trace_config=config)
    return Tracer(options, exporter=open_exporter(options))


class Exporter(TraceExporter):
    """Keeps its traces."""

    shown = {"url": "http://there"}

    def __init__(self, takes_context=True, takes_tensors=False):
        self.takes_context = takes_context
        self.takes_tensors = takes_tensors
        self.traces = []
        self.closed = None

    def export(self, trace):
        self.traces.append(trace)

    async def close(self, timeout_s):
        self.closed = timeout_s


def answered(request):
    reply = Reply(request)
    reply.send(None, True)
    return reply


async def traced(tracer, model="m", context=None):
    """Return whether the next request of a model is traced; it is answered at once."""
    request = InferenceRequest(model, {}, trace=context)
    if tracer.on:
        tracer.infer(request, model, 1, answered)
    await asyncio.sleep(0)  # a trace leaves in the next turn of the loop
    return request.trace is not None
