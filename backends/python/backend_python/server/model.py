"""PythonModel: one version of a model with a model.py."""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from pathlib import Path
from typing import Any

import core
from backend_python.server.control import ModelControl
from backend_python.server.found import model_file
from backend_python.server.process import Settings, positive
from core.errors import invalid

logger = logging.getLogger("core")

EXECUTE_TIMEOUT = "EXECUTE_TIMEOUT_SECONDS"
MODES = ("process", "thread", "inline")


class PythonModel(core.Model):
    """Checks at load that there is something to run.

    mode       where execute runs: "process", "thread" or "inline"
    decoupled  whether a request may have any number of answers
    """

    mode: str = "process"

    @property
    def python_file(self) -> Path:
        """model.py, or what is in its place."""
        return model_file(self.config, self.path)

    @property
    def decoupled(self) -> bool:
        return bool(self.config.model_transaction_policy.decoupled)

    @property
    def outputs(self) -> list[str]:
        """Names of what clients may ask for."""
        return [output.name for output in self.config.output]

    @property
    def states(self) -> list[str]:
        """Names of the outputs that renew what the server keeps of a sequence: always wanted."""
        return [state.output_name for state in self.config.sequence_batching.state]

    @cached_property
    def one_by_one(self) -> bool:
        """Whether each request runs alone, whatever others do."""
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
        """What answers its questions about other models; None if it runs without a server."""
        return None if self.models is None else ModelControl(self.models, loop, self.waits)

    @property
    def module_name(self) -> str:
        """The name that the model's file is imported as: "1.model" in a child, as in Triton."""
        return f"{self.version}.{self.python_file.stem}"

    @property
    def settings(self) -> Settings:
        return Settings(self.backend.config)

    @property
    def execute_timeout_s(self) -> int:
        """How long an execution may take before its child is stuck; 0 for any time."""
        text = self.parameter(EXECUTE_TIMEOUT)
        if not text:
            return self.settings.execute_timeout_s
        return positive(text, f"model '{self.name}': parameter {EXECUTE_TIMEOUT} is '{text}'")

    def load(self) -> None:
        """Raises CoreError(INVALID) for a missing file or an unknown EXECUTION_MODE."""
        check_file(self.python_file)
        mode = self.parameter("EXECUTION_MODE", "process").lower()
        if mode not in MODES:
            raise invalid(
                f"model '{self.name}': parameter EXECUTION_MODE is '{mode}', "
                f"expected one of {', '.join(MODES)}"
            )
        self.mode = mode
        if environment := self.parameter("EXECUTION_ENV_PATH"):
            logger.warning(
                "model '%s': EXECUTION_ENV_PATH '%s' is not used, the model runs with the packages "
                "of the server",
                self.name,
                environment,
            )
        _ = self.settings, self.execute_timeout_s  # say now what is wrong with them


def check_file(file: Path) -> None:
    """CoreError(INVALID) that names the file if it is missing, and what is there instead."""
    if file.is_file():
        return
    beside = sorted(entry.name for entry in file.parent.glob("*.py"))
    hint = f"; the folder has {', '.join(beside)}" if beside else ""
    raise invalid(
        f"Python model file not found in '{file}'{hint}. A Python model needs "
        f"{file.name} in its version folder, or default_model_filename in config.pbtxt"
    )
