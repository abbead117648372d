"""A collector of OpenTelemetry on loopback: OTLP over HTTP, on a separate thread."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Listens from `start` to `close`.

    spans      what came, in order: name, trace, id and parent (hex), state, kind, attributes, events
               (names), status (text), resource
    status     of the next answers; 400 refuses what comes
    """

    def __init__(self):
        self.spans = []
        self.status = 200
        self.refused = 0
        self._came = threading.Condition()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def start(self):
        self._thread.start()
        assert self._started.wait(30)
        return self

    def close(self):
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    @property
    def config(self):
        """--trace-config of a server that sends its spans here, as Options keep it."""
        return {
            "": [("mode", "opentelemetry"), ("level", "TIMESTAMPS"), ("rate", "1")],
            "opentelemetry": [("url", self.url), ("bsp_schedule_delay", "20")],
        }

    def named(self, *names, timeout_s=30):
        """The first spans with these names, in that order, once all have come."""
        with self._came:
            assert self._came.wait_for(
                lambda: all(any(s.name == name for s in self.spans) for name in names), timeout_s
            ), [span.name for span in self.spans]
            return [next(s for s in self.spans if s.name == name) for name in names]

    def count(self, name):
        """How many spans have the name until now."""
        with self._came:
            return sum(span.name == name for span in self.spans)

    def tree(self):
        """(name of the parent, name) of all spans that have come, sorted; the parent "" is none of them."""
        with self._came:
            names = {span.id: span.name for span in self.spans}
            return sorted((names.get(span.parent, ""), span.name) for span in self.spans)

    async def _serve(self):
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application()
        app.router.add_post("/v1/traces", self._take)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
        self._started.set()
        await self._ended.wait()
        await runner.cleanup()

    async def _take(self, request):
        message = ExportTraceServiceRequest.FromString(await request.read())
        with self._came:
            if self.status != 200:
                self.refused += 1
                self._came.notify_all()
                return web.Response(status=self.status)
            for group in message.resource_spans:
                resource = _attributes(group.resource)
                for scope in group.scope_spans:
                    self.spans += [_span(span, scope.scope.name, resource) for span in scope.spans]
            self._came.notify_all()
        return web.Response(content_type="application/x-protobuf")


def _attributes(holder):
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value")) for each in holder.attributes
    }


def _span(span, scope, resource):
    assert span.start_time_unix_nano <= span.end_time_unix_nano
    return SimpleNamespace(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        state=span.trace_state,
        kind=span.kind,
        attributes=_attributes(span),
        events=[event.name for event in span.events],
        status=span.status.message,
        scope=scope,
        resource=resource,
    )
