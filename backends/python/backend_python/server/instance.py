"""The ModelInstance of a Python model. EXECUTION_MODE chooses a child process or this process."""

from __future__ import annotations

import json

import core
from backend_python.server.active import Done
from backend_python.server.inprocess import InProcess
from backend_python.server.keeper import Keeper
from backend_python.server.model import PythonModel
from core.batch import Batch
from core.config import to_json


class PythonInstance(core.ModelInstance):
    """One TritonPythonModel object, in a child process or in this one."""

    placement = "callback"

    model: PythonModel
    _way: Keeper | InProcess

    def open(self) -> None:
        """Start the model and let it initialize. Raise CoreError with its own text if it raises."""
        in_a_child = self.model.mode in ("process", "shared")
        self._way = Keeper(self) if in_a_child else InProcess(self)
        self._way.open()
        self.memory = "device" if self._way.takes_gpu else "host"

    def begin(self, batch: Batch, done: Done) -> None:
        """Run the batch: send it to the child, or pass it to the model in this process."""
        self._way.begin(batch, done)

    def ready(self) -> bool:
        return self._way.ready()

    async def check(self) -> bool:
        return await self._way.check()

    def close(self) -> None:
        """Let the model finalize, and end the thread or process that `open` has started."""
        self._way.close()

    def arguments(self) -> dict[str, str]:
        """Return the arguments of the model's initialize."""
        return {
            "model_config": json.dumps(to_json(self.model.config), separators=(",", ":")),
            "model_instance_kind": self.device.kind,
            "model_instance_name": self.name,
            "model_instance_device_id": str(self.device.id),
            "model_repository": str(self.model.directory),
            "model_version": str(self.model.version),
            "model_name": self.model.name,
        }
