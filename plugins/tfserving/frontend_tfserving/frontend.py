"""TfServingFrontend: the REST API of TensorFlow Serving alone, on --tfserving-port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontend_tfserving.options import TfServingOptions
from frontend_tfserving.rest.routes import OF_MODELS, OF_ONE_MODEL
from frontends.http.extra_port import ExtraPort

if TYPE_CHECKING:
    from core.server import InferenceServer


class TfServingFrontend(ExtraPort):
    """The port of this API. Loop thread only."""

    name = "tfserving"

    def __init__(self, server: InferenceServer):
        self._options = TfServingOptions.of(server.options)
        rows = (*OF_ONE_MODEL, *OF_MODELS)
        super().__init__(
            server, rows, "TensorFlow Serving HTTPService", self._options.tfserving_port
        )

    @property
    def enabled(self) -> bool:
        """Return whether the options ask for the port."""
        return self._options.allow_tfserving and self._options.tfserving_port > 0
