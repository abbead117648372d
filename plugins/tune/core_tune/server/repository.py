"""Repository: the configuration of a model on a server, over HTTP or gRPC, and loads with another one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core_bench.model.address import model_path
from core_bench.model.control import Control, HttpControl, error_of

from core.errors import CoreError, Kind, unavailable
from core_tune.observation import Refused

_LOAD_S = 600.0
_HINT = (
    "start the server with --model-control-mode=explicit --load-model=*, "
    "or name the folder of the model: core tune models/{model}"
)


class Repository:
    """Of one model. Each method raises CoreError if the server does not answer."""

    def __init__(self, control: Control, model: str):
        self._control, self.model = control, model

    def config(self) -> dict[str, Any]:
        """Return the completed configuration in use."""
        if isinstance(self._control, HttpControl):
            status, found = self._control.ask("GET", f"{model_path(self.model, '')}/config")
            if status != 200:
                text = error_of(found) or f"status {status}"
                raise CoreError(
                    Kind.INVALID, f"the configuration of model '{self.model}' is not known: {text}"
                )
            return dict(found)
        return dict(self._grpc("ModelConfig", name=self.model)["config"])

    def load(self, config: Mapping[str, Any] | None) -> None:
        """Load the model again, with a configuration, or with that of the repository for None.

        Raises Refused if the server cannot load it: it serves what it served. Raises CoreError if the
        server permits no loads.
        """
        text = "" if config is None else json.dumps(config)
        try:
            self._load(text)
        except Refused as error:
            if "explicit model load" in str(error):
                raise unavailable(
                    f"the server does not load models on request ({error}); "
                    f"{_HINT.format(model=self.model)}"
                ) from None
            raise

    def _load(self, config: str) -> None:
        if isinstance(self._control, HttpControl):
            body = {"parameters": {"config": config}} if config else {}
            path = f"/v2/repository/models/{self.model}/load"
            status, found = self._control.ask("POST", path, body, _LOAD_S)
            if status in (401, 403):
                raise CoreError(Kind.INVALID, f"the server refuses to load: {error_of(found)}")
            if status != 200:
                raise Refused(error_of(found) or f"status {status}")
            return
        from frontends.grpc.protocol import messages

        parameters = {}
        if config:
            parameters["config"] = messages.ModelRepositoryParameter(string_param=config)
        self._grpc("RepositoryModelLoad", _LOAD_S, model_name=self.model, parameters=parameters)

    def _grpc(self, method: str, timeout_s: float = 30.0, **fields: Any) -> dict[str, Any]:
        import grpc
        from core_bench.model.grpc_control import GrpcControl

        assert isinstance(self._control, GrpcControl)
        try:
            return self._control.ask(method, timeout_s, **fields)
        except grpc.RpcError as error:
            text = str(error.details())
            denied = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
            if error.code() in denied or method != "RepositoryModelLoad":
                raise CoreError(Kind.INVALID, f"the server refuses {method}: {text}") from None
            raise Refused(text) from None
