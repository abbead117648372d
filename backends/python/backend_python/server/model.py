"""PythonModel: one version of a model with a model.py."""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from pathlib import Path
from typing import Any

import core
from backend_python import apart
from backend_python.environments.environment import Environment, environments
from backend_python.server.control import ModelControl
from backend_python.server.found import model_file
from backend_python.server.process import Origin
from backend_python.server.settings import Settings, positive, switch
from backend_python.server.shared import worker
from backend_python.server.template import SharedTemplate, template
from core.backend import Backend
from core.config import ModelConfig
from core.errors import invalid
from core.plugins import file_of, isolated_by

logger = logging.getLogger("core")

EXECUTE_TIMEOUT = "EXECUTE_TIMEOUT_SECONDS"
CHECK_OUTPUTS = "CHECK_OUTPUTS"
WORKER = "SHARED_WORKER"
FORCE_CPU = "FORCE_CPU_ONLY_INPUT_TENSORS"
DEFAULT_WORKER = "shared"
APART = Path(apart.__file__).with_name("model.py")
MODES = ("process", "shared", "thread", "inline")


class PythonModel(core.Model):
    """One version of a Python model. It checks its file, settings and environment at load.

    mode       where execute runs: "process", "shared", "thread" or "inline"
    decoupled  True if a request may have any number of answers
    """

    mode: str = "process"
    _environment: Environment | None = None  # None: the server's packages

    @property
    def python_file(self) -> Path:
        """The path of model.py, or of the file that the model has in its place."""
        return model_file_of(self.config, self.path, self.backend)

    @property
    def decoupled(self) -> bool:
        return bool(self.config.model_transaction_policy.decoupled)

    @property
    def takes_gpu(self) -> bool:
        """True if inputs on a GPU may stay there: parameter FORCE_CPU_ONLY_INPUT_TENSORS is "no"."""
        return self.parameter(FORCE_CPU, "yes").lower() == "no"

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs that clients may request."""
        return [output.name for output in self.config.output]

    @property
    def states(self) -> list[str]:
        """Names of the outputs that renew the state of a sequence. They are requested with every request."""
        return [state.output_name for state in self.config.sequence_batching.state]

    @cached_property
    def one_by_one(self) -> bool:
        """True if each request runs alone: the model is not decoupled and has no batcher for its requests."""
        config = self.config
        return not (
            self.decoupled
            or config.HasField("dynamic_batching")
            or config.HasField("sequence_batching")
        )

    @property
    def models(self) -> Any:
        """The server whose models this one may call; None if it runs without one."""
        return getattr(self, "server", None)

    def control(self, loop: asyncio.AbstractEventLoop) -> ModelControl | None:
        """Return the handler of this model's operations on other models; None if it runs without a server."""
        return None if self.models is None else ModelControl(self.models, loop, self.waits)

    @property
    def module_name(self) -> str:
        """The module name of the model's file in a child process."""
        return module_of(self.python_file, self.path)

    @property
    def template(self) -> SharedTemplate:
        """The template process from which the child processes of this model, or its worker, are forked."""
        return template if self._environment is None else self._environment.template

    @cached_property
    def origin(self) -> Origin:
        """The template process, or the shared worker, that starts its instances."""
        if self.mode == "process":
            return self.template
        return worker(self.models, self.template, self.parameter(WORKER) or DEFAULT_WORKER)

    @property
    def settings(self) -> Settings:
        return Settings(self.backend.config)

    @property
    def execute_timeout_s(self) -> int:
        """Time limit of an execution in seconds, after which its child counts as stuck. 0 for no limit."""
        text = self.parameter(EXECUTE_TIMEOUT)
        if not text:
            return self.settings.execute_timeout_s
        return positive(text, f"model '{self.name}': parameter {EXECUTE_TIMEOUT} is '{text}'")

    @property
    def _checks_outputs(self) -> bool:
        """Return whether core checks outputs against the configuration; False for a backend in the child."""
        if isolated_by(self.backend) is not None:
            return False
        text = self.parameter(CHECK_OUTPUTS)
        if not text:
            return self.settings.check_outputs
        return switch(text, f"model '{self.name}': parameter {CHECK_OUTPUTS} is '{text}'")

    def load(self) -> None:
        """Check the model and open its environment.

        Raise CoreError(INVALID) for a missing file, an unknown EXECUTION_MODE, or an environment that
        models cannot run in. This takes minutes if the environment must be unpacked or installed."""
        self.check_settings()
        mode = self.mode
        self.output_hint = (
            f"; --backend-config={self.backend.name},check-outputs=false turns this check off for all "
            f"models, the parameter {CHECK_OUTPUTS} in config.pbtxt, set to false, for one"
        )
        environment = open_environment(self.config, self.path, self.backend)
        if environment is not None and mode not in ("process", "shared"):
            environments.release(environment)
            raise invalid(
                f"model '{self.name}': an environment of its own needs EXECUTION_MODE process or shared, "
                f"found '{mode}', which runs with the server's packages"
            )
        self._environment = environment

    def check_settings(self) -> None:
        """Check file and parameters, and keep the mode. Raise the errors of `load` for them."""
        check_file(self.python_file, self.backend)
        mode = self.parameter("EXECUTION_MODE", "process").lower()
        if mode not in MODES:
            raise invalid(
                f"model '{self.name}': parameter EXECUTION_MODE is '{mode}', "
                f"expected one of {', '.join(MODES)}"
            )
        if self.parameter(WORKER) and mode != "shared":
            raise invalid(
                f"model '{self.name}': parameter {WORKER} is '{self.parameter(WORKER)}', which needs "
                f"EXECUTION_MODE shared, found '{mode}'"
            )
        self.mode = mode
        places = self.parameter(FORCE_CPU, "yes")
        if places.lower() not in ("yes", "no"):
            raise invalid(
                f"model '{self.name}': parameter {FORCE_CPU} is '{places}', expected yes or no"
            )
        _ = self.settings, self.execute_timeout_s  # raises now if they are invalid
        self.checks_outputs = self._checks_outputs

    def unload(self) -> None:
        """Release the model's environment, if it does not run with the server's packages."""
        environment, self._environment = self._environment, None
        if environment is not None:
            environments.release(environment)


def model_file_of(config: ModelConfig, version: Path, backend: Backend) -> Path:
    """Return the Python file that runs the model.

    It is the runner of other backends (APART) if another backend runs in the child, a file in the folder of
    the model's backend in --backend-directory if it has one, else a file of the version.
    """
    if isolated_by(backend) is not None:
        return APART
    if (of_folder := file_of(backend)) is not None:
        return of_folder.parent / (config.runtime or of_folder.name)
    return model_file(config, version)


def module_of(file: Path, version: Path) -> str:
    """Return the module name of the file as in Triton: "1.model"; "model" if it is not in the version."""
    return f"{version.name}.{file.stem}" if file.is_relative_to(version) else file.stem


def open_environment(config: ModelConfig, version: Path, backend: Backend) -> Environment | None:
    """Open the environment of a model; the caller must release it. None means the server's packages.

    Raise CoreError(INVALID) if models cannot run in it.
    """
    if isolated_by(backend) is not None:  # other files of its model belong to that backend
        return None
    timeout_s = Settings(backend.config).timeout_s
    of_folder = file_of(backend)
    folder = of_folder.parent if of_folder is not None else None
    return environments.open(config, version, backend.config, timeout_s, folder)


def settings_apart(backend: Backend) -> dict[str, str]:
    """Return the --backend-config settings of a backend that runs in the child; empty for Python models."""
    isolated = isolated_by(backend)
    return dict(isolated.config) if isolated is not None else {}


def check_file(file: Path, backend: Backend) -> None:
    """Raise CoreError(INVALID) if the file is missing. The message names it and the other files there."""
    if file.is_file():
        return
    beside = sorted(entry.name for entry in file.parent.glob("*.py"))
    hint = f"; the folder has {', '.join(beside)}" if beside else ""
    needs = (
        f"A Python model needs {file.name} in its version folder, or default_model_filename in "
        "config.pbtxt"
        if file_of(backend) is None
        else f"It is the folder of backend '{backend.name}'; runtime in config.pbtxt names the file in it"
    )
    raise invalid(f"Python model file not found in '{file}'{hint}. {needs}")
