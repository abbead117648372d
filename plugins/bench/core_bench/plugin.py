"""The hooks of core-bench: a server with it measures its own models when an operator asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.options import Flags
    from core.server import InferenceServer

CATEGORY = "bench"  # of roles and restrictions


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    """Add the category: a measurement loads the server."""
    from frontends.shared.added_categories import add_category

    add_category(CATEGORY, reading=("manage",), changing=("manage",))


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Add the route. Nothing of it runs before a request to it."""
    from core_bench.http.routes import BenchRoutes

    server.shared(BenchRoutes).add_to(server)
