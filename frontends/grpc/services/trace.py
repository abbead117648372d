"""TraceSetting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.errors import CoreError, invalid
from core.server import InferenceServer
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.messages import TraceSettingRequest, TraceSettingResponse


class TraceService:
    """Read and change the trace settings. Call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._server = server

    @staticmethod
    def changes(data: bytes) -> bool:
        """Return whether a request changes settings; True for invalid bytes, which are refused later."""
        try:
            return bool(decode(TraceSettingRequest, data).settings)
        except CoreError:
            return True

    async def trace_setting(self, data: bytes, call: GrpcCall) -> bytes:
        """Apply the changes of the request and return all settings, of the server or of a model.

        Every value is a list; an empty list clears the setting.
        """
        request = decode(TraceSettingRequest, data)
        changes = {key: _value(key, each.value) for key, each in request.settings.items()}
        response = TraceSettingResponse()
        control = self._server.control.settings
        if changes:
            settings = await control.change_trace_settings(changes, request.model_name)
        else:
            settings = control.trace_settings(request.model_name)
        for key, value in settings.items():
            shown = value if isinstance(value, list) else [value]
            response.settings[key].value.extend(shown)
        return response.SerializeToString()


def _value(key: str, values: Sequence[str]) -> Any:
    if not values:
        return None
    if key == "trace_level":
        return list(values)
    if len(values) != 1:
        raise invalid(f"expect only 1 value for '{key}'")
    return values[0]
