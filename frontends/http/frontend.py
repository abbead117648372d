"""HttpFrontend: the KServe v2 protocol on --http-port."""

from __future__ import annotations

from core.server import InferenceServer
from frontends.http.cors import Cors
from frontends.http.extra_routes import HttpRoutes
from frontends.http.interceptors import restrictions
from frontends.http.listener import HttpListener
from frontends.http.options import HttpOptions
from frontends.http.router import Router, table, unknown_operations
from frontends.shared.memory import MemoryControl
from frontends.shared.tls import Certificates


class HttpFrontend(HttpListener):
    """The port of the KServe v2 protocol over HTTP/1.1. Not thread-safe: call from the event loop only."""

    name = "http"

    def __init__(self, server: InferenceServer):
        MemoryControl.of(server)  # before other workers ask for its operations
        options = HttpOptions.of(server.options)
        more = HttpRoutes.of(server)
        rows = (*table(server.control.areas), *more.rows)
        super().__init__(
            server,
            Router(
                restrictions(options.http_restricted_api),
                (*rows, unknown_operations(rows)),
                refusals=more.refusals,
            ),
            "HTTPService",
            options.http_address,
            options.http_port,
            reuse_port=options.reuse_http_port or server.options.workers > 1,
            # The fast path knows no other headers than its own.
            lane=options.http_lane == "auto" and not options.http_header_forward_pattern,
            certificates=Certificates.of("http", options) if options.has_tls else None,
            cors=Cors(options.http_cors_origins) if options.http_cors_origins else None,
        )

    async def stop(self, timeout_s: float) -> None:
        HttpRoutes.of(self._server).end()
        await super().stop(timeout_s)

    @property
    def enabled(self) -> bool:
        return HttpOptions.of(self._server.options).allow_http
