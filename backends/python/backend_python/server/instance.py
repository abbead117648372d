"""ModelInstance: in a child process, or in this one, as the model's EXECUTION_MODE says."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable

import core
from backend_python import protocol
from backend_python.server import process
from backend_python.server.connection import Connection
from backend_python.server.errors import unhealthy
from backend_python.server.inprocess import InProcess
from backend_python.server.model import PythonModel
from backend_python.server.process import Died, Process
from backend_python.server.requests import parts_of
from core.batch import Batch
from core.config import to_json
from core.errors import internal


class PythonInstance(core.ModelInstance):
    """One TritonPythonModel object, wherever it lives."""

    model: PythonModel
    _way: ChildProcess | InProcess

    def open(self) -> None:
        """Start the model and let it initialize; CoreError with its own text if it raises."""
        self._way = ChildProcess(self) if self.model.mode == "process" else InProcess(self)
        self._way.open()

    async def execute(self, batch: Batch) -> None:  # type: ignore[override]
        await self._way.execute(batch)

    def ready(self) -> bool:
        return self._way.ready()

    def close(self) -> None:
        """Let the model finalize, and end what open has started."""
        self._way.close()

    def arguments(self) -> dict[str, str]:
        """What the model's initialize gets."""
        return {
            "model_config": json.dumps(to_json(self.model.config), separators=(",", ":")),
            "model_instance_kind": self.device.kind,
            "model_instance_name": self.name,
            "model_instance_device_id": str(self.device.id),
            "model_repository": str(self.model.directory),
            "model_version": str(self.model.version),
            "model_name": self.model.name,
        }


class ChildProcess:
    """The model runs in a child; this side only passes messages, on the loop."""

    def __init__(self, instance: PythonInstance):
        self._instance = instance
        self._process: Process | None = None
        self._connection: Connection | None = None  # loop thread
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def open(self) -> None:
        """Start the child and wait for the model's initialize, however long it takes. Any thread but
        the loop's; CoreError with the model's own text and traceback if it raises."""
        instance = self._instance
        model = instance.model
        child = process.start(instance.name, model.settings)
        question = {
            "file": str(model.python_file),
            "module": model.module_name,
            "directory": str(model.path),
            "outputs": [output.name for output in model.config.output],
            "decoupled": model.decoupled,
            "arguments": instance.arguments(),
        }
        try:
            answer = child.ask(protocol.INITIALIZE, question, protocol.INITIALIZED, None)
        except Died:
            child.kill()
            raise unhealthy(instance.name) from None
        except BaseException:
            child.kill()
            raise
        if "error" in answer:
            child.finalize()
            raise internal(answer["error"])
        self._process = child

    def ready(self) -> bool:
        return not self._closed

    async def execute(self, batch: Batch) -> None:
        """Run a batch in the child; a child that has died is started again first. Loop thread."""
        connection = self._connection
        if connection is None or not connection.alive:
            connection = await self._connect()
        await connection.execute(batch, parts_of(batch))

    async def _connect(self) -> Connection:
        loop = self._loop = asyncio.get_running_loop()
        if self._process is None:
            await loop.run_in_executor(None, self.open)
        assert self._process is not None
        decoupled = self._instance.model.decoupled
        self._connection = Connection(self._process, loop, decoupled, self._died)
        return self._connection

    def _died(self) -> None:
        self._process = None  # the connection closes it when the process has ended

    def close(self) -> None:
        """Let the model finalize and end the child. Any thread but the loop's, while that runs."""
        self._closed = True
        idle = self._on_loop(self._detach)
        child, self._process = self._process, None
        if child is None:
            return
        if idle:
            child.finalize()
        else:
            child.kill()

    def _detach(self) -> bool:
        """Loop thread: give the channel back; whether the child is idle."""
        connection, self._connection = self._connection, None
        if connection is None or not connection.alive:
            return True
        idle = not connection.busy
        connection.detach()
        connection.fail_all()
        return idle

    def _on_loop(self, function: Callable[[], bool]) -> bool:
        loop = self._loop
        if loop is None or not loop.is_running():
            return True
        done = threading.Event()
        found = [True]

        def call() -> None:
            found[0] = function()
            done.set()

        loop.call_soon_threadsafe(call)
        done.wait()
        return found[0]
