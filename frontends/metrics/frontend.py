"""MetricsFrontend: serves the metrics of the server over HTTP."""

from __future__ import annotations

import asyncio

from core.server import InferenceServer
from frontends.http.interceptors import restrictions
from frontends.http.listener import HttpListener
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.options import HttpOptions
from frontends.http.router import Router, row
from frontends.metrics.options import MetricsOptions
from frontends.metrics.text import CONTENT_TYPE, render
from frontends.shared.tls import Certificates

_HEADERS = {"Content-Type": CONTENT_TYPE}


async def metrics(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the metrics of all workers for /metrics, and an empty response with status 200 for other paths.

    Other paths are for probes. Raises CoreError(UNAVAILABLE) if a worker does not report its metrics:
    counters would decrease without its values.
    """
    if call.path != "/metrics":
        return HttpResponse(200, _HEADERS)
    families = await server.control.health.metrics()
    # Render on another thread: the text of a thousand models takes long.
    text = await asyncio.get_running_loop().run_in_executor(None, render, families)
    return HttpResponse(200, _HEADERS, text.encode())


_TABLE = (row("GET", ".*", "metrics", metrics),)


class MetricsFrontend(HttpListener):
    """The HTTP port with GET /metrics (--metrics-port). Not thread-safe: call from the event loop only."""

    name = "metrics"

    def __init__(self, server: InferenceServer):
        options, http = MetricsOptions.of(server.options), HttpOptions.of(server.options)
        super().__init__(
            server,
            Router(restrictions(http.http_restricted_api), _TABLE),
            "Metrics Service",
            options.metrics_address,
            options.metrics_port,
            reuse_port=server.options.workers > 1,
            certificates=Certificates.of("http", http) if options.metrics_use_ssl else None,
            logged=False,  # no access log lines for scrapes
        )

    @property
    def enabled(self) -> bool:
        return self._server.options.allow_metrics

    async def start(self) -> None:
        """Start the sources of metrics, then listen. Raises what they and HttpListener.start raise."""
        self._server.watch.start(asyncio.get_running_loop())
        await super().start()

    async def stop(self, timeout_s: float) -> None:
        """Stop the sources of metrics, then listening; wait at most `timeout_s` for running requests."""
        self._server.watch.stop()
        await super().stop(timeout_s)
