"""OpenAIFrontend: the routes of OpenAI alone, on --openai-port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontend_openai.options import OpenAIOptions
from frontend_openai.routes import REFUSALS, ROWS
from frontends.http.cors import Cors
from frontends.http.interceptors import restrictions
from frontends.http.listener import HttpListener
from frontends.http.options import HttpOptions
from frontends.http.router import Router
from frontends.shared.tls import Certificates

if TYPE_CHECKING:
    from core.server import InferenceServer


class OpenAIFrontend(HttpListener):
    """The port of these routes: address, TLS, CORS and restrictions are those of HTTP. Loop thread only."""

    name = "openai"

    def __init__(self, server: InferenceServer):
        http = HttpOptions.of(server.options)
        self._options = OpenAIOptions.of(server.options)
        super().__init__(
            server,
            Router(restrictions(http.http_restricted_api), ROWS, refusals=REFUSALS),
            "OpenAI HTTPService",
            http.http_address,
            self._options.openai_port,
            reuse_port=server.options.workers > 1,
            certificates=Certificates.of("http", http) if http.has_tls else None,
            cors=Cors(http.http_cors_origins) if http.http_cors_origins else None,
        )

    @property
    def enabled(self) -> bool:
        """Return whether the options ask for the port."""
        return self._options.allow_openai and self._options.openai_port > 0
