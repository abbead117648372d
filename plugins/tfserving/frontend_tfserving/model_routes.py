"""The routes of TensorFlow Serving whose paths another API may have too: /v1/models and /v1/models/NAME.

They come after the routes of all other plugins, so a plugin for OpenAI's clients keeps its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from frontend_tfserving.options import TfServingOptions

if TYPE_CHECKING:
    from core.server import InferenceServer


@core.hookimpl(trylast=True)
def core_server_starting(server: InferenceServer) -> None:
    """Add the routes to the HTTP port."""
    if not TfServingOptions.of(server.options).allow_tfserving:
        return
    from frontend_tfserving.rest.routes import OF_MODELS
    from frontends.http.extra_routes import HttpRoutes

    HttpRoutes.of(server).add(OF_MODELS)
