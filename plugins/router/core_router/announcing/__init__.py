"""The part of core-router that runs in a server of core: it tells routers at once which models have changed.

core_model_changed ─► ModelChanges ─► every worker ─► GET /v2/repository/changes, for each router
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.lifecycle import ModelVersion
    from core.server import InferenceServer
    from core_router.announcing.changes import ModelChanges

_changes: dict[int, ModelChanges] = {}  # by the id of the server


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Add the route that routers read."""
    # Imported here: a command line needs no server library.
    from core_router.announcing.routes import add_to

    _changes[id(server)] = add_to(server)


@core.hookimpl
def core_model_changed(model: ModelVersion, state: str) -> None:
    """Tell the routers, once a version serves or no longer does.

    A process may have several servers, each with its own event loop.
    """
    if state == "loading":
        return
    for each in list(_changes.values()):
        each.changed(model.name)


@core.hookimpl
def core_server_stopping(server: InferenceServer) -> None:
    _changes.pop(id(server), None)
