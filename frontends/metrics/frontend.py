"""MetricsFrontend: serves what InferenceServer.metrics tells."""

from __future__ import annotations

import asyncio

from core.server import InferenceServer
from frontends.http.frontend import certificates
from frontends.http.interceptors import restrictions
from frontends.http.listener import HttpListener
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.options import HttpOptions
from frontends.http.router import Router, row
from frontends.metrics.options import MetricsOptions
from frontends.metrics.text import CONTENT_TYPE, render

_HEADERS = {"Content-Type": CONTENT_TYPE}


async def metrics(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """The metrics at /metrics; nothing at other paths, as dashboards' probes expect.

    Raises CoreError(UNAVAILABLE) if a worker does not answer: sums would fall.
    """
    if call.path != "/metrics":
        return HttpResponse(200, _HEADERS)
    families = await server.control.health.metrics()
    # On another thread: the text of a thousand models takes a while.
    text = await asyncio.get_running_loop().run_in_executor(None, render, families)
    return HttpResponse(200, _HEADERS, text.encode())


_TABLE = (row("GET", ".*", "metrics", metrics),)


class MetricsFrontend(HttpListener):
    """GET /metrics on --metrics-port. Loop thread only."""

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
            certificates=certificates(http) if options.metrics_use_ssl else None,
            logged=False,  # scrapes have no lines in the access log
        )

    @property
    def enabled(self) -> bool:
        return self._server.options.allow_metrics

    async def start(self) -> None:
        """Listen. Raises as HttpListener.start."""
        self._server.watch.start(asyncio.get_running_loop())
        await super().start()

    async def stop(self, timeout_s: float) -> None:
        """Stop listening. A scrape is answered as soon as it is read, so there is little to wait for."""
        self._server.watch.stop()
        await super().stop(timeout_s)
