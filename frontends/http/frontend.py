"""HttpFrontend: the KServe v2 protocol on --http-port."""

from __future__ import annotations

from core.options import Options
from core.server import InferenceServer
from frontends.http.interceptors import restrictions
from frontends.http.listener import HttpListener
from frontends.http.router import Router, table, unknown_operations
from frontends.shared.memory import MemoryControl
from frontends.shared.tls import Certificates, certificates_of_http


class HttpFrontend(HttpListener):
    """The KServe v2 protocol over HTTP/1.1. Not thread-safe: call from the event loop only."""

    name = "http"

    def __init__(self, server: InferenceServer):
        MemoryControl.of(server)  # before other workers ask for its operations
        options = server.options
        rows = table(server.control.areas)
        super().__init__(
            server,
            Router(restrictions(options.http_restricted_api), (*rows, unknown_operations(rows))),
            "HTTPService",
            options.http_address,
            options.http_port,
            reuse_port=options.reuse_http_port,
            lane=_has_lane(options),
            certificates=_certificates(options),
        )

    @property
    def enabled(self) -> bool:
        return self._server.options.allow_http


def _has_lane(options: Options) -> bool:
    """Return whether requests may bypass aiohttp: not if options need headers beyond the fast path's."""
    return options.http_lane == "auto" and not options.http_header_forward_pattern


def _certificates(options: Options) -> Certificates | None:
    if not (options.http_use_ssl or options.http_use_ssl_mutual):
        return None
    return certificates_of_http(options)
