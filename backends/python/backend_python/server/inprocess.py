"""EXECUTION_MODE thread and inline: model.py in the server's own process.

The model uses the same classes as in a child, but there is no isolation: it shares the interpreter with the
server, and its inputs are read-only views of the client's data.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from backend_python.api import host as api_host
from backend_python.api.logger import LogLevel
from backend_python.api.request import InferenceRequest
from backend_python.runner import (
    ModelRunner,
    checked_readiness,
    described,
    failure,
    is_coroutine,
)
from backend_python.server.active import Done
from backend_python.server.errors import failed
from backend_python.server.found import add_adapters
from backend_python.server.handover import Handover
from backend_python.server.local import LocalHost
from backend_python.server.process import write_log
from backend_python.server.readiness import LIMIT_S
from core.batch import Batch
from core.errors import internal

if TYPE_CHECKING:
    from backend_python.server.instance import PythonInstance


T = TypeVar("T")

logger = logging.getLogger("core")


class InProcess:
    """An instance whose model runs in this process: on a thread of its own, or on the event loop."""

    def __init__(self, instance: PythonInstance):
        self._instance = instance
        self._runner: ModelRunner | None = None
        self._module_name = ""  # in sys.modules, of the model's file
        self._host: LocalHost
        self._handover: Handover
        # One thread for all calls, so that what the model ties to its thread stays with it.
        self._thread: ThreadPoolExecutor | None = None
        self._executing = 0  # batches that have not ended; this and the next two: event loop only
        self._tasks: set[asyncio.Task[None]] = set()
        self._says_ready = True
        self.takes_gpu = instance.model.takes_gpu

    def open(self) -> None:
        """Import the model and let it initialize. Raise CoreError with its own text if it raises."""
        instance, model = self._instance, self._instance.model
        self._host = LocalHost(
            str(model.path),
            model.decoupled,
            model.models,
            instance.loop,
            model.control(instance.loop),
            frozenset(model.outputs + model.states) if model.checks_outputs else None,
        )
        self._handover = Handover(
            self._host,
            model.outputs,
            model.states,
            model.decoupled,
            model.takes_gpu,
            model.checks_outputs,
        )
        self._host.handover = self._handover
        if model.mode == "thread":
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=instance.name)
        else:
            instance.host_policy.tell_loop(instance.name)
        try:
            self._runner = self._on_its_thread(self._load)
        except BaseException as error:
            self._stop()
            raise internal(described(error)) from error
        self._host.serving = True

    def ready(self) -> bool:
        return self._runner is not None

    async def check(self) -> bool:
        """Return the result of the model's is_ready; False if it raises or takes longer than LIMIT_S.

        While the model executes, return the last result. Without is_ready, return whether it is loaded.

        Not thread-safe: call from the event loop only.
        """
        runner = self._runner
        if runner is None or not runner.tells_readiness:
            return runner is not None
        if not self._executing:
            try:
                self._says_ready = await asyncio.wait_for(self._ask(runner), LIMIT_S)
            except Exception as error:
                logger.error("is_ready of '%s' failed: %s", self._instance.name, described(error))
                self._says_ready = False
        return self._says_ready

    async def _ask(self, runner: ModelRunner) -> bool:
        loop = asyncio.get_running_loop()
        with api_host.running(self._host):
            if self._thread is not None:
                context = contextvars.copy_context()
                return await loop.run_in_executor(self._thread, context.run, runner.is_ready)
            with api_host.answering():
                returned = runner.ask_ready()
                return checked_readiness(await returned if is_coroutine(returned) else returned)

    def begin(self, batch: Batch, done: Done) -> None:
        """Start a batch.

        With mode thread it is queued for the thread of the model. With mode inline it has run, and `done` was
        called, when this returns; a coroutine becomes a task instead.
        Not thread-safe: call from the event loop only.
        """
        if self._thread is not None:
            self._executing += 1
            self._thread.submit(self._execute_there, batch, done)
            return
        batch.compute_start_ns = time.monotonic_ns()
        assert self._runner is not None
        waits = self._handover.run(batch, self._runner.call, self._fail)
        if waits is None:
            done(None)
            return
        self._executing += 1
        with api_host.running(self._host), api_host.Outer(batch) as outer:  # the task takes both
            task = self._instance.loop.create_task(self._await(batch, outer, *waits, done))
        self._tasks.add(task)  # the loop holds tasks weakly

    async def _await(
        self,
        batch: Batch,
        outer: api_host.Outer,
        requests: list[InferenceRequest],
        coroutine: Any,
        done: Done,
    ) -> None:
        """Await the coroutine of an execution, answer or fail the batch, and call `done`."""
        assert self._runner is not None
        problem: BaseException | None = None
        try:
            try:
                responses = self._runner.checked(requests, await coroutine)
            except BaseException as error:
                self._fail(batch, error)
            else:
                self._handover.answer(batch, requests, responses)
        except Exception as error:
            problem = error
        outer.end()
        self._executing -= 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.discard(task)
        done(problem)

    def close(self) -> None:
        """Let the model finalize on its thread, if it was loaded, and end the thread."""
        runner, self._runner = self._runner, None
        self._host.serving = False
        try:
            if runner is not None:
                self._on_its_thread(lambda: self._finalize(runner))
        finally:
            self._stop()

    def _stop(self) -> None:
        api_host.hosts_of_modules.pop(self._module_name, None)
        self._host.close()
        self._host.handover = None
        if self._thread is not None:
            self._thread.shutdown()

    def _on_its_thread(self, function: Callable[[], T]) -> T:
        return function() if self._thread is None else self._thread.submit(function).result()

    def _load(self) -> ModelRunner:
        instance, model = self._instance, self._instance.model
        # Every model of this process needs a name of its own in sys.modules.
        name = self._module_name = f"python_model_{model.name}_{model.module_name}_{id(self):x}"
        api_host.hosts_of_modules[name] = self._host
        add_adapters()
        if self._thread is not None:
            instance.host_policy.bind()
        with api_host.running(self._host):
            try:
                runner = ModelRunner(str(model.python_file), name, str(model.path), model.decoupled)
                runner.initialize(instance.arguments())
            except BaseException:
                sys.modules.pop(name, None)
                raise
        return runner

    def _finalize(self, runner: ModelRunner) -> None:
        with api_host.running(self._host):
            runner.finalize()

    def _execute_there(self, batch: Batch, done: Done) -> None:
        """Run a batch on the thread of the model, then let the event loop call `_executed`."""
        problem: Exception | None = None
        try:
            self._execute_on_thread(batch)
        except Exception as error:
            problem = error
        with suppress(RuntimeError):  # the loop has ended, so no request waits
            self._instance.loop.call_soon_threadsafe(self._executed, done, problem)

    def _executed(self, done: Done, problem: Exception | None) -> None:
        self._executing -= 1
        done(problem)

    def _execute_on_thread(self, batch: Batch) -> None:
        batch.compute_start_ns = time.monotonic_ns()
        assert self._runner is not None
        waits = self._handover.run(batch, self._runner.call, self._fail)
        if waits is None:
            return
        requests, coroutine = waits
        with api_host.running(self._host):
            try:
                returned = self._coroutine(batch, requests, coroutine)
                responses = self._runner.checked(requests, returned)
            except BaseException as error:
                self._fail(batch, error)
                return
        self._handover.answer(batch, requests, responses)

    def _coroutine(self, batch: Batch, requests: list[InferenceRequest], coroutine: Any) -> Any:
        """Run an async execute to its end and return its value.

        For a decoupled model, start it on another thread and return None, so that later batches begin.
        """
        assert self._runner is not None
        outer = api_host.Outer(batch)
        if not self._instance.model.decoupled:
            try:
                with outer:
                    return self._runner.run(coroutine)
            finally:
                outer.end()

        def ended(error: BaseException | None) -> None:  # the loop's thread
            outer.end()
            if error is not None:
                self._fail(batch, error)

        for request in requests:
            request.get_response_sender()
        with outer:
            self._runner.start(coroutine, ended)
        return None

    def _fail(self, batch: Batch, error: BaseException) -> None:
        problem = failed(self._instance.name, described(error))
        write_log(LogLevel.ERROR, *failure(error, self._instance.name))
        for i in range(len(batch.requests)):
            batch.fail(i, problem, failure=True)
