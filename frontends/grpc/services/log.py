"""LogSettings."""

from __future__ import annotations

from typing import Any

from core.errors import CoreError
from core.server import InferenceServer
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.messages import LogSettingsRequest, LogSettingsResponse

_CHOICES = {bool: "bool_param", int: "uint32_param", str: "string_param"}


class LogService:
    """Read and change the log settings. Call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._server = server

    @staticmethod
    def changes(data: bytes) -> bool:
        """Return whether a request changes settings; True for invalid bytes, which are refused later."""
        try:
            return bool(decode(LogSettingsRequest, data).settings)
        except CoreError:
            return True

    async def log_settings(self, data: bytes, call: GrpcCall) -> bytes:
        """Apply the changes of the request and return all settings; a setting without value is unchanged."""
        request = decode(LogSettingsRequest, data)
        changes = {key: _value(setting) for key, setting in request.settings.items()}
        response = LogSettingsResponse()
        control = self._server.control.settings
        settings = await control.change_log_settings(changes) if changes else control.log_settings()
        for key, value in settings.items():
            setattr(response.settings[key], _CHOICES[type(value)], value)
        return response.SerializeToString()


def _value(setting: LogSettingsRequest.SettingValue) -> Any:
    choice = setting.WhichOneof("parameter_choice")
    return None if choice is None else getattr(setting, choice)
