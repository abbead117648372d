"""TraceSetting and LogSettings: apply the changes of a request, and return all settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.errors import CoreError, invalid
from core.server import InferenceServer
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.messages import (
    LogSettingsRequest,
    LogSettingsResponse,
    TraceSettingRequest,
    TraceSettingResponse,
)

_LOG_CHOICES = {bool: "bool_param", int: "uint32_param", str: "string_param"}


def changes(request_class: type[LogSettingsRequest | TraceSettingRequest], data: bytes) -> bool:
    """Return whether a request has settings to change; True for invalid bytes, which are refused later."""
    try:
        return bool(decode(request_class, data).settings)
    except CoreError:
        return True


async def trace(server: InferenceServer, request: TraceSettingRequest) -> TraceSettingResponse:
    """Change trace settings of the model that the request names, else of the server; return all of them.

    Every value is a list; only trace_level may have several items. An empty list clears the setting: a model
    then uses that of the server, the server that of the command line. Without settings, nothing changes.
    """
    changed = {key: _trace_value(key, each.value) for key, each in request.settings.items()}
    response = TraceSettingResponse()
    control = server.control.settings
    if changed:
        settings = await control.change_trace_settings(changed, request.model_name)
    else:
        settings = control.trace_settings(request.model_name)
    for key, value in settings.items():
        shown = value if isinstance(value, list) else [value]
        response.settings[key].value.extend(shown)
    return response


def _trace_value(key: str, values: Sequence[str]) -> Any:
    if not values:
        return None
    if key == "trace_level":
        return list(values)
    if len(values) != 1:
        raise invalid(f"expect only 1 value for '{key}'")
    return values[0]


async def log(server: InferenceServer, request: LogSettingsRequest) -> LogSettingsResponse:
    """Change settings of the log, and return all of them. A setting without a value stays unchanged."""
    changed = {key: _log_value(setting) for key, setting in request.settings.items()}
    response = LogSettingsResponse()
    control = server.control.settings
    settings = await control.change_log_settings(changed) if changed else control.log_settings()
    for key, value in settings.items():
        setattr(response.settings[key], _LOG_CHOICES[type(value)], value)
    return response


def _log_value(setting: LogSettingsRequest.SettingValue) -> Any:
    choice = setting.WhichOneof("parameter_choice")
    return None if choice is None else getattr(setting, choice)
