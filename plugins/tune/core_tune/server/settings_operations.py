"""SettingsOperations: the live settings of one model on a server, asked over HTTP or gRPC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from core_bench.model.address import model_path
from core_bench.model.control import Control, HttpControl, error_of

from core.errors import unavailable
from core_tune.observation import Refused

if TYPE_CHECKING:
    from core_bench.model.grpc_control import GrpcControl


class SettingsOperations(Protocol):
    """Raises CoreError if the server does not answer."""

    def read(self) -> Mapping[str, Any] | None:
        """Return the report on the settings; None if the server has no live settings, or refuses."""

    def write(self, settings: Mapping[str, Any]) -> None:
        """Change settings. Raises Refused."""


class OverHttp:
    """By the route /v2/models/<model>/settings."""

    def __init__(self, control: HttpControl, model: str):
        self._control, self._path = control, f"{model_path(model, '')}/settings"

    def read(self) -> Mapping[str, Any] | None:
        status, found = self._control.ask("GET", self._path)
        return found if status == 200 else None

    def write(self, settings: Mapping[str, Any]) -> None:
        status, found = self._control.ask("POST", self._path, settings)
        if status != 200:
            raise Refused(error_of(found) or f"status {status}")


class OverGrpc:
    """By the control operations `model_settings.get` and `set`."""

    def __init__(self, control: GrpcControl, model: str):
        self._control, self._model = control, model

    def read(self) -> Mapping[str, Any] | None:
        import grpc

        try:
            found: Mapping[str, Any] = self._control.operate(
                "model_settings.get", model=self._model
            )
        except grpc.RpcError as error:
            _raise_if_gone(error)
            return None
        return found

    def write(self, settings: Mapping[str, Any]) -> None:
        import grpc

        try:
            self._control.operate("model_settings.set", model=self._model, settings=dict(settings))
        except grpc.RpcError as error:
            _raise_if_gone(error)
            raise Refused(str(error.details())) from None


def _raise_if_gone(error: Any) -> None:
    """Raise CoreError(UNAVAILABLE) if a server has not answered: what it serves now is not known."""
    if error.code().name in ("DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELLED"):
        raise unavailable(f"the server does not answer: {error.details()}")


def settings_operations(control: Control, model: str) -> SettingsOperations:
    """Return the operations of a model on the server that a control asks."""
    if isinstance(control, HttpControl):
        return OverHttp(control, model)
    from core_bench.model.grpc_control import GrpcControl

    assert isinstance(control, GrpcControl)
    return OverGrpc(control, model)
