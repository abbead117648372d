"""ModelInstance: in a child process, or in this one, as the model's EXECUTION_MODE says."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future

import core
from backend_python import protocol
from backend_python.server import process
from backend_python.server.active import Done
from backend_python.server.connection import Connection
from backend_python.server.errors import unhealthy
from backend_python.server.inprocess import InProcess
from backend_python.server.model import PythonModel
from backend_python.server.process import Died, Process
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

    @property
    def placement(self) -> str:  # type: ignore[override]
        """A child answers by callback; in this process execute is a coroutine."""
        return "callback" if self.model.mode == "process" else "inline"

    def begin(self, batch: Batch, done: Done) -> None:
        """Send the batch to the child."""
        assert isinstance(self._way, ChildProcess)
        self._way.begin(batch, done)

    async def execute(self, batch: Batch) -> None:  # type: ignore[override]
        """Run the batch in this process."""
        assert isinstance(self._way, InProcess)
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
        self._process: Process | None = (
            None  # a thread's in open and close, between them the loop's
        )
        self._connection: Connection | None = None  # loop thread
        self._restarting: asyncio.Task[None] | None = None  # the loop holds tasks weakly
        self._waiting: list[tuple[Batch, Done]] = []  # for the child that is started again
        self._closed = False

    def open(self) -> None:
        """Start the child, wait for the model's initialize, and hand it to the loop. A worker thread.

        CoreError with the model's own text and traceback if its initialize raises.
        """
        child = self._start()
        self._process = child
        self._instance.loop.call_soon_threadsafe(self._attach, child)

    def ready(self) -> bool:
        return not self._closed

    def _ahead(self, batches: int) -> None:
        """Only where requests run one by one: a batcher does better to wait for more of them, and a
        sequence's next request needs what the last one left."""
        if self._instance.model.one_by_one:
            self._instance.ahead = batches

    def begin(self, batch: Batch, done: Done) -> None:
        """Run a batch in the child; a child that has died is started again first. Loop thread."""
        connection = self._connection
        if connection is not None and connection.alive:
            connection.begin(batch, done)
            return
        self._waiting.append((batch, done))
        if self._restarting is None:
            self._restarting = self._instance.loop.create_task(self._begin_anew())

    async def _begin_anew(self) -> None:
        """Start the child again for those that wait; they fail if that fails."""
        error: Exception = unhealthy(self._instance.name)
        connection: Connection | None = None
        try:
            connection = await self._restart()
        except Exception as raised:
            error = raised
        finally:
            self._restarting = None
            waiting, self._waiting = self._waiting, []
            for batch, done in waiting:
                if connection is None:
                    done(error)
                else:
                    _begin(connection, batch, done)

    async def _restart(self) -> Connection:
        child = await self._instance.loop.run_in_executor(None, self._start)
        if self._closed:  # in the meantime
            await self._instance.loop.run_in_executor(None, child.kill)
            raise unhealthy(self._instance.name)
        self._process = child
        return self._attach(child)

    def _start(self) -> Process:
        """A child whose model is initialized, however long that takes. A worker thread."""
        instance = self._instance
        model = instance.model
        child = process.start(instance.name, model.settings, model.control(instance.loop))
        question = {
            "file": str(model.python_file),
            "module": model.module_name,
            "directory": str(model.path),
            "outputs": model.outputs + model.states,
            "decoupled": model.decoupled,
            "calls_models": model.models is not None,
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
        return child

    def _attach(self, child: Process) -> Connection:
        model = self._instance.model
        self._connection = Connection(
            child,
            self._instance.loop,
            model.decoupled,
            self._died,
            self.begin,
            self._ahead,
            model.outputs,
            model.states,
            model.models,
        )
        return self._connection

    def _died(self) -> None:
        self._process = None  # the connection closes it when the process has ended

    def close(self) -> None:
        """Let the model finalize and end the child; if it still executes, end it at once. A worker
        thread, while the loop runs."""
        self._closed = True
        connection = self._detached()
        child, self._process = self._process, None
        if child is None:
            if connection is not None:
                connection.ended.result()  # it has been killed
        elif connection is None or not connection.was_busy:
            child.finalize()
        else:
            child.kill()

    def _detached(self) -> Connection | None:
        """Wait until the loop has given the channel back."""
        found: Future[Connection | None] = Future()
        self._instance.loop.call_soon_threadsafe(lambda: found.set_result(self._detach()))
        return found.result()

    def _detach(self) -> Connection | None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.detach()
            connection.fail_all()
        return connection


def _begin(connection: Connection, batch: Batch, done: Done) -> None:
    try:
        connection.begin(batch, done)
    except Exception as error:
        done(error)
