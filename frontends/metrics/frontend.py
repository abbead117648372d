"""MetricsFrontend: serves what Server.metrics tells."""

from __future__ import annotations

import asyncio
import errno
import hmac
import logging
import ssl

from core import unix_sockets
from core.access import demand
from core.errors import CoreError, Kind, forbidden, unavailable
from core.server import Server
from frontends.access import address_of, answer_headers, shown
from frontends.aiohttp_web import web
from frontends.http.connections import Connections
from frontends.metrics.text import CONTENT_TYPE, render
from frontends.tls import certificates_of_http, listening
from frontends.unread import end_unread

logger = logging.getLogger("core")

_METRICS = demand("metrics", changes=False)
_STATUS = {Kind.UNAUTHENTICATED: 401, Kind.FORBIDDEN: 403, Kind.EXHAUSTED: 429}
_BACKLOG = 128
_SHUTDOWN_S = 1.0  # for a scraper that reads its answer slowly


class MetricsFrontend:
    """GET /metrics on --metrics-port. Loop thread only."""

    name = "metrics"

    def __init__(self, server: Server):
        self._server = server
        self._required = server.options.http_restricted_api.get("metrics")
        self._runner: web.ServerRunner | None = None  # while it listens
        self._listener: asyncio.Server | None = None
        self._unix: unix_sockets.UnixListener | None = None

    @property
    def enabled(self) -> bool:
        return self._server.options.allow_metrics

    @property
    def port(self) -> int:
        """The port that it listens on; the option's may be 0 for any free one."""
        assert self._listener is not None
        if self._unix is not None:
            return self._server.options.metrics_port
        return int(self._listener.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Listen. Raises CoreError(UNAVAILABLE) when the socket is in use or the address is not here,
        CoreError(INVALID) for certificates that cannot be used."""
        self._server.watch.start(asyncio.get_running_loop())
        host, port = self._server.options.metrics_address, self._server.options.metrics_port
        options = self._server.options
        shared = options.workers > 1 or None
        secure: ssl.SSLContext | None = None
        if options.metrics_use_ssl:
            found = listening(certificates_of_http(options), "http/1.1", self._server.files)
            secure = found["ssl"]
        connections = Connections(self._answer, self._server, has_lane=False)
        connections.access_log = None  # scrapes have no lines there
        runner = web.ServerRunner(connections, shutdown_timeout=_SHUTDOWN_S)
        await runner.setup()
        if unix_sockets.is_unix(host):
            await self._start_at(host, runner, secure)
            return
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                connections, host, port, backlog=_BACKLOG, reuse_port=shared, ssl=secure
            )
        except OSError as error:
            await runner.cleanup()
            if error.errno == errno.EADDRINUSE:
                raise unavailable(f"Socket '{host}:{port}' already in use") from error
            raise unavailable(f"cannot listen at '{host}:{port}': {error}") from error
        end_unread(self._listener, options.http_answer_timeout_secs)
        self._runner = runner
        logger.info("Started Metrics Service at %s:%d", host, self.port)

    async def _start_at(
        self, address: str, runner: web.ServerRunner, secure: ssl.SSLContext | None
    ) -> None:
        """Listen at a Unix domain socket."""
        try:
            self._unix = unix_sockets.listen(address, self._server.options.unix_socket_mode)
        except CoreError:
            await runner.cleanup()
            raise
        assert runner.server is not None
        self._listener = await unix_sockets.serve(runner.server, self._unix, ssl=secure)
        self._runner = runner
        logger.info("Started Metrics Service at %s", address)

    async def stop(self, timeout_s: float) -> None:
        """Stop listening. A scrape is answered as soon as it is read, so there is little to wait for."""
        self._server.watch.stop()
        if self._listener is not None:
            self._listener.close()
        if self._unix is not None:
            self._unix.remove()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        response = self._refusal(request)
        if response is None:
            response = await self._told(request)
        response.headers["Server"] = "core"
        if not request.content.is_eof():  # nobody reads a body here
            response.force_close()
        return response

    async def _told(self, request: web.BaseRequest) -> web.Response:
        # Anything but GET is refused, and other paths are empty, as dashboards' probes expect.
        if request.method != "GET":
            return web.Response(
                status=405, body=b'{"error":"Method Not Allowed"}', content_type="text/plain"
            )
        text = ""
        if request.path == "/metrics":
            try:
                families = await self._server.management.metrics()
                # On another thread: the text of a thousand models takes a while.
                text = await asyncio.get_running_loop().run_in_executor(None, render, families)
            except CoreError as error:  # a worker does not answer: sums would fall
                return web.Response(status=503, text=error.message)
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    def _refusal(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to who may not see metrics; None for who may. Every path is one of metrics."""
        error: CoreError | None = None
        if self._required is not None:
            header, value = self._required
            given = request.headers.get(header, "").encode("utf-8", "surrogateescape")
            if not hmac.compare_digest(given, value.encode()):
                error = forbidden(f"This API is restricted, expecting header '{header}'")
        try:
            if (gate := self._server.access) is not None:
                credentials = shown(request.headers, address_of(request.transport))
                gate.admit(credentials, _METRICS).enter().leave()
        except CoreError as refused:
            error = refused
        if error is None:
            return None
        return web.json_response(
            {"error": error.message}, status=_STATUS[error.kind], headers=answer_headers(error)
        )
