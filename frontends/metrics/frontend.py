"""MetricsFrontend: serves what Server.metrics tells."""

from __future__ import annotations

import errno
import logging

from core.errors import CoreError, unavailable
from core.server import Server
from frontends.aiohttp_web import web
from frontends.metrics.text import CONTENT_TYPE, render

logger = logging.getLogger("core")

_SHUTDOWN_S = 1.0  # for a scraper that reads its answer slowly


class MetricsFrontend:
    """GET /metrics on --metrics-port. Loop thread only."""

    name = "metrics"

    def __init__(self, server: Server):
        self._server = server
        self._runner: web.ServerRunner | None = None  # while it listens

    @property
    def enabled(self) -> bool:
        return self._server.options.allow_metrics

    @property
    def port(self) -> int:
        """The port that it listens on; the option's may be 0 for any free one."""
        assert self._runner is not None
        return int(self._runner.addresses[0][1])

    async def start(self) -> None:
        """Listen. Raises CoreError(UNAVAILABLE) when the socket is in use or the address is not here."""
        host, port = self._server.options.metrics_address, self._server.options.metrics_port
        shared = self._server.options.workers > 1 or None
        runner = web.ServerRunner(
            web.Server(self._answer, access_log=None), shutdown_timeout=_SHUTDOWN_S
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, reuse_port=shared).start()
        except OSError as error:
            await runner.cleanup()
            if error.errno == errno.EADDRINUSE:
                raise unavailable(f"Socket '{host}:{port}' already in use") from error
            raise unavailable(f"cannot listen at '{host}:{port}': {error}") from error
        self._runner = runner
        logger.info("Started Metrics Service at %s:%d", host, self.port)

    async def stop(self, timeout_s: float) -> None:
        """Stop listening. A scrape is answered as soon as it is read, so there is little to wait for."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        # Anything but GET is refused, and other paths are empty, as dashboards' probes expect.
        if request.method != "GET":
            return web.Response(
                status=405, body=b'{"error":"Method Not Allowed"}', content_type="text/plain"
            )
        text = ""
        if request.path == "/metrics":
            try:
                text = render(await self._server.management.metrics())
            except CoreError as error:  # a worker does not answer: sums would fall
                return web.Response(status=503, text=error.message)
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})
