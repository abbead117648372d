"""Keeper: keeps an instance's child running from `open` to `close`.

PythonInstance ─► [Keeper] ─► Process while it starts, Connection while it serves.

When a child dies, the keeper starts another: at once the first time, then after growing pauses. Requests that
arrive meanwhile wait for the next child. In a long pause they are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from backend_python import protocol
from backend_python.server import process
from backend_python.server.active import Done
from backend_python.server.backoff import PATIENCE_S, Backoff
from backend_python.server.connection import Connection
from backend_python.server.errors import unhealthy
from backend_python.server.found import add_adapters
from backend_python.server.health import Health
from backend_python.server.lending import Lending, gpus
from backend_python.server.model import settings_apart
from backend_python.server.process import Died, Process
from backend_python.server.watch import Watch
from core.batch import Batch
from core.errors import CoreError, internal

if TYPE_CHECKING:
    from backend_python.server.instance import PythonInstance

logger = logging.getLogger("core")

T = TypeVar("T")


class Keeper:
    """The server's side of an instance whose model runs in a child or in a worker.

    It only passes messages, on the event loop.
    """

    def __init__(self, instance: PythonInstance):
        self._instance = instance
        self._health = Health(instance.model.name, instance.model.version)
        self._backoff = Backoff()
        self._tells_readiness = False
        self.takes_gpu = False  # the model takes inputs on a GPU without a copy to the host
        self._lock = threading.Lock()  # guards the next two
        self._closed = False
        self._starting: Process | None = None  # a child that initializes
        # Everything below belongs to the event loop.
        self._connection: Connection | None = None
        self._watch: Watch | None = None
        self._revival: asyncio.Task[None] | None = None  # while there is no child
        self._pausing = False  # the revival waits before its next try
        self._refusal: Exception | None = None  # the error for requests during a long pause
        self._waiting: list[tuple[Batch, Done]] = []  # batches that wait for the next child

    def open(self) -> None:
        """Start the child, wait for the model's initialize, and pass the child to the event loop.

        Blocks: call from a worker thread. Raise CoreError with the model's own text and traceback if its
        initialize raises.
        """
        try:
            child = self._start()
        except BaseException:
            self._health.close()
            raise
        self._instance.loop.call_soon_threadsafe(self._attach, child)

    def ready(self) -> bool:
        """Return whether the instance is open and has a child with a live connection. Thread-safe."""
        connection = self._connection
        return not self._closed and connection is not None and connection.alive

    async def check(self) -> bool:
        """Return whether a child serves and the model's is_ready, if it has one, returns True.

        Not thread-safe: call from the event loop only.
        """
        connection = self._connection
        if not self.ready() or connection is None:
            return False
        return not self._tells_readiness or await connection.readiness.ask()

    def begin(self, batch: Batch, done: Done) -> None:
        """Run a batch in the child. If there is none, the batch waits for the next child.

        During a long pause, and after `close`, fail the batch instead.

        Not thread-safe: call from the event loop only.
        """
        connection = self._connection
        if connection is not None and connection.alive:
            connection.begin(batch, done)
        elif self._closed or self._refusal is not None:
            done(self._refusal or unhealthy(self._instance.name))
        else:
            self._waiting.append((batch, done))

    # a child, from its start to its end ------------------------------------------

    def _start(self) -> Process:
        """Return a new child whose model is initialized. No time limit applies to initialize.

        Blocks: call from a worker thread.
        """
        instance = self._instance
        model = instance.model
        child = process.start(
            instance.name, model.settings, model.control(instance.loop), model.origin
        )
        module = model.module_name
        if model.mode != "process":  # in a worker it must be unique for each instance
            module = f"python_model_{model.name}_{module}_{id(child):x}"
        question = {
            "file": str(model.python_file),
            "module": module,
            "directory": str(model.path),
            "outputs": model.outputs + model.states,
            "checks_outputs": model.checks_outputs,
            "decoupled": model.decoupled,
            "calls_models": model.models is not None,
            "arguments": instance.arguments(),
            "settings": settings_apart(model.backend),
            "adapters": add_adapters(),
        }
        lending = Lending(child.name, child.inputs, child.outputs) if gpus() else None
        child.lending = lending
        if lending is not None:
            question["gpus"] = [uuid.hex() for uuid in gpus()]
            question["takes_gpu"] = model.takes_gpu
        try:
            with self._lock:
                if self._closed:
                    raise unhealthy(instance.name)
                self._starting = child
            try:
                # Before the model loads, so that its threads inherit the cores.
                with contextlib.suppress(ProcessLookupError):  # it has ended, which `ask` finds
                    instance.host_policy.bind(child.pid)
                answer = child.ask(protocol.INITIALIZE, question, protocol.INITIALIZED, None)
            finally:
                with self._lock:
                    self._starting = None
        except Died:
            child.kill()
            raise unhealthy(instance.name) from None
        except BaseException:
            child.kill()
            raise
        if "error" in answer:
            child.finalize()
            raise internal(answer["error"])
        self._tells_readiness = bool(answer.get("tells_readiness"))
        if lending is not None:
            lending.takes = frozenset(map(bytes.fromhex, answer.get("gpus", ())))
            self.takes_gpu = bool(lending.takes)
        return child

    def _attach(self, child: Process) -> None:
        """Connect and watch a started child. Send it the batches that wait; errors go to their `done`."""
        model, loop = self._instance.model, self._instance.loop
        connection = self._connection = Connection(
            child, loop, model, self._died, self.begin, self._ahead
        )
        self._watch = Watch(
            loop,
            model.execute_timeout_s,
            model.settings.timeout_s,
            child.pid,
            connection.executions.current,
            connection.end,
        )
        self._instance.pids = (child.pid,)
        self._health.serves(True)
        waiting, self._waiting = self._waiting, []
        for batch, done in waiting:
            try:
                connection.begin(batch, done)
            except Exception as error:
                done(error)
        self._instance.changed()

    def _ahead(self, batches: int) -> None:
        """Set how many batches the child may have. Do nothing unless the model's requests run one by one.

        Other models keep one batch: a batcher gains by waiting for more requests, and a sequence's next
        request needs the state that the last one left.
        """
        if self._instance.model.one_by_one:
            self._instance.ahead = batches

    def _died(self) -> None:
        """Handle the loss of the child. The connection ends and closes it; `_ended` then starts another."""
        connection, watch = self._connection, self._watch
        if connection is None or watch is None:
            return
        watch.close()
        self._instance.pids = ()
        self._health.serves(False)
        if connection.executions.worked:
            self._backoff.worked()
        connection.ended.add_done_callback(self._ended)
        self._instance.changed()

    def _ended(self, _: Future[None]) -> None:
        """Start the revival. The child is gone, with everything that the model had made in the server."""
        if not self._closed:
            pause_s = self._backoff.failed()
            self._revival = self._instance.loop.create_task(self._revive(pause_s))

    async def _revive(self, pause_s: float) -> None:
        """Start children until one serves. If a try fails, refuse the requests that wait."""
        error: Exception = unhealthy(self._instance.name)
        died = self._instance.loop.time()
        while not self._closed:
            await self._pause(pause_s, error)
            try:
                child = await self._elsewhere(self._start)
            except Exception as raised:
                error = raised
                pause_s = self._backoff.failed()
                if not self._closed:
                    text = error.message if isinstance(error, CoreError) else repr(error)
                    name = self._instance.name
                    logger.error(
                        "'%s' cannot start again, next try in %g s: %s", name, pause_s, text
                    )
                self._refuse_waiting(error)
                continue
            if self._closed:
                await self._elsewhere(child.kill)
                return
            self._revival = None
            self._health.restarted()
            self._attach(child)
            away_s = self._instance.loop.time() - died
            name = self._instance.name
            logger.info("'%s' serves again, %.3f s after its process ended", name, away_s)
            return

    async def _pause(self, pause_s: float, error: Exception) -> None:
        """Wait `pause_s` seconds. In a pause longer than PATIENCE_S, refuse requests with `error`."""
        if pause_s > PATIENCE_S:
            self._refusal = error
            self._refuse_waiting(error)
        self._pausing = True
        try:
            await asyncio.sleep(pause_s)
        finally:
            self._pausing = False
            self._refusal = None

    def _refuse_waiting(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, []
        for _, done in waiting:
            done(error)

    async def _elsewhere(self, function: Callable[[], T]) -> T:
        """Call a function that may take long on a thread of its own, and return its result."""
        thread = ThreadPoolExecutor(1, thread_name_prefix=self._instance.name)
        try:
            return await self._instance.loop.run_in_executor(thread, function)
        finally:
            thread.shutdown(wait=False)

    # the end -----------------------------------------------------------------------

    def close(self) -> None:
        """Let the model finalize and end the child. If the child still executes, kill it at once.

        Blocks: call from a worker thread, while the event loop runs.
        """
        with self._lock:
            self._closed = True
            if self._starting is not None:
                self._starting.give_up()
        detached: Future[Connection | None] = Future()
        revived: Future[None] = Future()
        self._instance.loop.call_soon_threadsafe(self._detach, detached, revived)
        connection = detached.result()
        revived.result()
        if connection is None:
            return
        if not connection.detached:
            connection.ended.result()  # wait for the end of a killed child
        elif connection.was_busy:
            connection.process.kill()
        else:
            connection.process.finalize()

    def _detach(self, detached: Future[Connection | None], revived: Future[None]) -> None:
        """Return the channel to the thread that closes, and prevent the start of another child."""
        connection, self._connection = self._connection, None
        if self._watch is not None:
            self._watch.close()
        self._refuse_waiting(unhealthy(self._instance.name))
        if connection is not None:
            connection.detach()
            connection.fail_all()
        self._health.close()
        detached.set_result(connection)
        if (revival := self._revival) is None or revival.done():
            revived.set_result(None)
        else:
            revival.add_done_callback(lambda _: revived.set_result(None))
            if self._pausing:  # a start on another thread finds out by itself
                revival.cancel()
