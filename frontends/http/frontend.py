"""HttpFrontend: the KServe v2 protocol on --http-port."""

from __future__ import annotations

from core.server import InferenceServer
from frontends.http.interceptors import restrictions
from frontends.http.listener import HttpListener
from frontends.http.options import HttpOptions
from frontends.http.router import Router, table, unknown_operations
from frontends.shared.memory import MemoryControl
from frontends.shared.tls import Certificates


class HttpFrontend(HttpListener):
    """The KServe v2 protocol over HTTP/1.1. Not thread-safe: call from the event loop only."""

    name = "http"

    def __init__(self, server: InferenceServer):
        MemoryControl.of(server)  # before other workers ask for its operations
        options = HttpOptions.of(server.options)
        rows = table(server.control.areas)
        super().__init__(
            server,
            Router(restrictions(options.http_restricted_api), (*rows, unknown_operations(rows))),
            "HTTPService",
            options.http_address,
            options.http_port,
            reuse_port=options.reuse_http_port or server.options.workers > 1,
            lane=_has_lane(options),
            certificates=certificates(options) if options.has_tls else None,
        )

    @property
    def enabled(self) -> bool:
        return HttpOptions.of(self._server.options).allow_http


def _has_lane(options: HttpOptions) -> bool:
    """Return whether requests may bypass aiohttp: not if options need headers beyond the fast path's."""
    return options.http_lane == "auto" and not options.http_header_forward_pattern


def certificates(options: HttpOptions) -> Certificates:
    """Return the certificates of HTTP, which the port of metrics has too."""
    return Certificates(
        "http",
        certificate=options.http_server_cert,
        key=options.http_server_key,
        root=options.http_root_cert,
        mutual=options.http_use_ssl_mutual,
    )
