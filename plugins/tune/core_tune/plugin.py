"""The hooks of core-tune: a server with it tunes its own models when an operator asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.options import Flags
    from core.server import InferenceServer

CATEGORY = "tune"  # of roles and restrictions


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    """Add the category: a search loads the server, and loads its model with other settings."""
    from frontends.shared.added_categories import add_category

    add_category(CATEGORY, reading=("manage",), changing=("manage",))


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Add the route, if clients may load models. Nothing of it runs before a request to it."""
    if server.options.model_control_mode != "explicit":
        return
    from core_tune.http.routes import TuneRoutes

    server.shared(TuneRoutes).add_to(server)
