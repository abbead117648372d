"""Live settings of models, changed while they serve. server.py begins it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from core_settings.options import SettingsOptions

if TYPE_CHECKING:
    from core.governing import ModelVersion
    from core.options import Flags
    from core.server import InferenceServer
    from core_settings.server import ServerSettings

# Servers of one process, by the identity of `server.models`.
_settings: dict[int, ServerSettings] = {}


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    parser.add_section(SettingsOptions)


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Lay the settings over the configurations that load; add the control operations and the route."""
    from core_settings import routes
    from core_settings.control import ModelSettingsControl
    from core_settings.server import ServerSettings

    settings = _settings[id(server.models)] = ServerSettings(server)
    routes.add_to(server, server.control.add(ModelSettingsControl(settings)))


@core.hookimpl
def core_model_changed(model: ModelVersion, state: str, reason: str) -> None:
    """Put settings in force that have changed during the load."""
    if state == "ready":
        for settings in _settings.values():
            settings.refresh(model)


@core.hookimpl
def core_server_stopping(server: InferenceServer) -> None:
    # A server that never started has no models.
    _settings.pop(id(getattr(server, "models", None)), None)
