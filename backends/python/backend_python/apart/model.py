"""A model of another backend in a process of its own: a crash of its native code ends only this process.

server ─► requests ─► [TritonPythonModel] ─► the backend's execute ─► responses ─► server.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from backend_python.apart import running
from backend_python.api.model_config import ModelConfig
from backend_python.api.models import get_model_dir


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        """Let the backend complete the configuration from the model's files."""
        completed = running.completed(config.as_dict(), get_model_dir())
        return ModelConfig(json.dumps(completed))

    def initialize(self, args: dict[str, str]) -> None:
        self.running = running.Running(args, get_model_dir())

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        return self.running.execute(requests)

    def is_ready(self) -> bool:
        return self.running.instance.ready()

    def finalize(self) -> None:
        self.running.close()
