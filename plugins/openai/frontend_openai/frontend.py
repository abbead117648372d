"""OpenAIFrontend: the routes of OpenAI alone, on --openai-port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontend_openai.options import OpenAIOptions
from frontend_openai.routes import REFUSALS, ROWS
from frontends.http.extra_port import ExtraPort

if TYPE_CHECKING:
    from core.server import InferenceServer


class OpenAIFrontend(ExtraPort):
    """The port of these routes. Loop thread only."""

    name = "openai"

    def __init__(self, server: InferenceServer):
        self._options = OpenAIOptions.of(server.options)
        super().__init__(server, ROWS, "OpenAI HTTPService", self._options.openai_port, REFUSALS)

    @property
    def enabled(self) -> bool:
        """Return whether the options ask for the port."""
        return self._options.allow_openai and self._options.openai_port > 0
