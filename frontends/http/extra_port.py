"""ExtraPort: the routes of a plugin alone, on a port of their own."""

from __future__ import annotations

from collections.abc import Sequence

from core.server import InferenceServer
from frontends.http.cors import Cors
from frontends.http.extra_routes import Refusals
from frontends.http.interceptors import restrictions
from frontends.http.listener import HttpListener
from frontends.http.options import HttpOptions
from frontends.http.route import Route
from frontends.http.router import Router
from frontends.shared.tls import Certificates


class ExtraPort(HttpListener):
    """A port for some routes: address, TLS, CORS and restrictions are those of HTTP. Loop thread only.

    Base class of frontends. A subclass has a `name`, and `enabled`.

    rows       the routes
    title      of the service, in the log
    refusals   as in Router
    """

    def __init__(
        self,
        server: InferenceServer,
        rows: Sequence[Route],
        title: str,
        port: int,
        refusals: Sequence[Refusals] = (),
    ):
        http = HttpOptions.of(server.options)
        super().__init__(
            server,
            Router(restrictions(http.http_restricted_api), rows, refusals=refusals),
            title,
            http.http_address,
            port,
            reuse_port=server.options.workers > 1,
            certificates=Certificates.of("http", http) if http.has_tls else None,
            cors=Cors(http.http_cors_origins) if http.http_cors_origins else None,
        )
