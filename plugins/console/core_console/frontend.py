"""ConsoleFrontend: ends the events of open pages when the server stops. The routes are on the HTTP port."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from core_console.options import is_on
from core_console.routes import Console
from frontends.http.options import HttpOptions

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")


class ConsoleFrontend:
    """The part of the console that starts and stops with the ports of the server. Loop thread only."""

    name = "console"

    def __init__(self, server: InferenceServer):
        self._server = server

    @property
    def enabled(self) -> bool:
        """Return whether the options turn the console on."""
        return is_on(self._server.options)

    async def start(self) -> None:
        """Log that the page is on the HTTP port, in the form of other ports."""
        http = HttpOptions.of(self._server.options)
        logger.info("Started console at %s:%d", http.http_address, http.http_port)

    async def stop(self, timeout_s: float) -> None:
        """End the events of all pages, so that the HTTP port need not wait for them."""
        self._server.shared(Console).hub.close()
