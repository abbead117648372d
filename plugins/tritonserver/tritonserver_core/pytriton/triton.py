"""Triton: the server of a program that binds functions.

with Triton() as triton:
    triton.bind("double", infer_func=double, inputs=[…], outputs=[…])
    triton.serve()
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core import plugins
from tritonserver_core.pytriton.exceptions import (
    PyTritonInvalidOperationError,
    PyTritonValidationError,
)
from tritonserver_core.pytriton.functions import Handler, is_async
from tritonserver_core.pytriton.model_config import BoundConfig, ModelConfig, Tensor
from tritonserver_core.pytriton.server import FunctionServer
from tritonserver_core.pytriton.triton_config import (
    TritonConfig,
    TritonLifecyclePolicy,
    TritonSecurityConfig,
)

logger = logging.getLogger("core")

__all__ = ["Triton", "TritonConfig", "TritonLifecyclePolicy", "TritonSecurityConfig"]

_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_BY_DEFAULT = ("http", "grpc", "metrics")
_Model = tuple[list[Handler], bool]  # the functions of a model, and whether they are async


class Triton:
    """A server in this process that serves functions over HTTP and gRPC. Any thread.

    config            settings; variables PYTRITON_TRITON_CONFIG_… hold for those that it does not give
    security_config   which requests need a token; None: those that change the server or show its state
    `workspace` has no effect: nothing is written. Use it in a `with` block, or call `run` and `stop`.
    """

    def __init__(
        self,
        *,
        config: TritonConfig | None = None,
        workspace: str | Path | None = None,
        triton_lifecycle_policy: TritonLifecyclePolicy | None = None,
        security_config: TritonSecurityConfig | None = None,
    ):
        given = TritonConfig.from_env().given() | (config.given() if config else {})
        self._config = TritonConfig(**given)
        self._policy = triton_lifecycle_policy or TritonLifecyclePolicy()
        self._security = security_config or TritonSecurityConfig()
        self._models: dict[str, _Model] = {}
        self._server: FunctionServer | None = None
        self._lock = threading.RLock()  # of start, bind and stop
        self._ended = threading.Event()

    def bind(
        self,
        model_name: str,
        infer_func: Callable[..., Any] | Sequence[Callable[..., Any]],
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        model_version: int = 1,
        config: ModelConfig | None = None,
        strict: bool = False,
        trace_config: list[str] | None = None,
    ) -> None:
        """Serve a function as a model, at once if the server runs, else when it starts.

        infer_func     takes a list of Request and returns a list of dicts; decorators change both. A list has
                       one function for each instance
        strict         whether datatype and shape of each result are checked before the server checks them
        trace_config   has no effect: `TritonConfig.trace_config` configures traces
        Raises PyTritonValidationError for a wrong name or version, CoreError if the model cannot be loaded.
        """
        if not _NAME.fullmatch(model_name or ""):
            raise PyTritonValidationError(
                f"model name {model_name!r} is wrong: use letters, digits, '.', '_' and '-'"
            )
        if model_version != 1:
            raise PyTritonValidationError(
                f"model '{model_name}' has version {model_version}: a bound function is always version 1"
            )
        functions: list[Any] = (
            list(infer_func) if isinstance(infer_func, list | tuple) else [infer_func]
        )
        bound = BoundConfig(
            model_name, _named("INPUT", inputs), _named("OUTPUT", outputs), config or ModelConfig()
        )
        model = (
            [Handler(each, bound, strict, self._end) for each in functions],
            is_async(functions[0]),
        )
        with self._lock:
            if self._server is not None:
                self._server.serve_functions(*model)
            self._models[model_name] = model

    def run(self) -> None:
        """Start the server with all bound functions, and return. A second call does nothing.

        Raises CoreError if a function cannot be loaded or a port is taken; then nothing runs.
        """
        with self._lock:
            if self._server is not None:
                return
            self._ended.clear()
            server = FunctionServer(None, **self._options())
            server.start()
            try:
                for model in self._models.values():
                    server.serve_functions(*model)
                for name in _wanted(server):
                    server.open(name, {})
            except BaseException:
                server.stop(0.0)
                raise
            self._server = server
            atexit.register(self.stop)
        for name in self._models:
            logger.info("function available as model '%s': POST /v2/models/%s/infer", name, name)

    def connect(self) -> None:
        """Do nothing: the functions are part of the server. Raises an error if it does not run."""
        if not self.is_alive():
            raise PyTritonInvalidOperationError("the server does not run: call run()")

    def serve(self, monitoring_period_s: float = 10.0) -> None:
        """Start the server if it does not run, and serve until Ctrl-C, or until another thread stops it."""
        self.run()
        logger.info("serving in process %d; Ctrl-C ends it", os.getpid())
        try:
            while not self._ended.wait(monitoring_period_s):
                pass
        except KeyboardInterrupt:
            logger.info("SIGINT received, exiting")
        self.stop()

    def stop(self) -> bool:
        """Finish the running requests and stop. Return False if the server does not run."""
        with self._lock:
            server, self._server = self._server, None
            if server is None:
                return False
            atexit.unregister(self.stop)
            try:
                server.stop()
            finally:
                self._ended.set()
        return True

    def is_alive(self) -> bool:
        """Return whether the server runs."""
        return self._server is not None

    def is_connected(self) -> bool:
        """Return whether the functions are served."""
        return self._server is not None

    def get_access_token(self) -> str | None:
        """Return the token of restricted requests; None if there is none."""
        return self._security.access_token

    def __enter__(self) -> Triton:
        if self._policy.launch_triton_on_startup:
            self.run()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _end(self, error: Exception) -> None:
        """Stop the server because a function cannot serve any more. Any thread, the server's too."""
        logger.error("a function ends the server: %s", error)
        threading.Thread(target=self.stop, name="triton-stop", daemon=True).start()

    def _options(self) -> dict[str, Any]:
        given = self._config.given()
        explicit: dict[str, Any] = {"model_control_mode": "explicit"}
        if "model_repository" in given:
            explicit["load_model"] = ["*"]
        return {**self._security.options(), **explicit, **given}


def _named(prefix: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with a name each."""
    return [
        each if each.name else replace(each, name=f"{prefix}_{number}")
        for number, each in enumerate(tensors, 1)
    ]


def _wanted(server: FunctionServer) -> list[str]:
    """Return the frontends that the options enable: HTTP, gRPC and metrics by default."""
    options = server.options
    return [
        name
        for name in plugins.frontends()
        if options.value(f"allow_{name.replace('-', '_')}", name in _BY_DEFAULT)
    ]
