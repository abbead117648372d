"""EngineRunner: vLLM's AsyncLLM, on a thread with an event loop of its own.

Arguments ─► [EngineRunner] ─► AsyncLLM ─► processes of vLLM

vLLM computes in processes that it starts itself; AsyncLLM talks to them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib.util
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from backend_vllm.arguments import Arguments
from backend_vllm.counts import Counts
from backend_vllm.orphans import mark_server
from core.errors import CoreError, internal, invalid

logger = logging.getLogger("core")

T = TypeVar("T")

# Set unless the environment of the server has them. Processes that begin as copies of a server with threads
# can hang, and a server reports nothing to others unless it is asked to.
_ENVIRONMENT = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn", "VLLM_NO_USAGE_STATS": "1"}
# Of the compilers of grammars, xgrammar lets control characters into strings with a length, which is no JSON.
_STRUCTURES = {"structured_outputs_config": {"backend": "guidance"}}
_STOP_S = 30.0  # patience with requests that end, then with the processes
_starting = threading.Lock()  # vLLM changes the environment while it starts


class EngineRunner:
    """Starts an engine, and runs coroutines beside it.

    llm      the AsyncLLM; None once it is closed
    config   its VllmConfig
    loop     the event loop of its thread
    counts   what it reports of its steps; stays empty with `disable_log_stats`
    """

    llm: Any = None
    config: Any
    counts: Counts

    def __init__(self, arguments: Arguments, model: str, file: Path):
        """Start the engine, which takes seconds to minutes. Blocks.

        model, file   name of the model and its model.json, for errors
        Raises CoreError(INVALID) for arguments that vLLM refuses, and INTERNAL if it cannot load the model.
        """
        self._model = model
        self._file = file
        self.loop = _new_loop()
        self._thread = threading.Thread(target=self._serve, name=f"{model} vllm", daemon=True)
        self._thread.start()
        try:
            with _starting:
                self.call(self._start(arguments)).result()
        except BaseException:
            self._end()
            raise

    def call(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the thread of the engine. Any thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def soon(self, function: Callable[[], object]) -> None:
        """Call a function on the thread of the engine; nothing happens once it is closed. Any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(function)

    @property
    def is_alive(self) -> bool:
        """Whether the processes of the engine run. Any thread."""
        llm = self.llm  # another thread may close the engine
        return llm is not None and not llm.errored

    def close(self) -> None:
        """End all tasks, then the engine with its processes. Blocks."""
        try:
            self.call(self._stop()).result(_STOP_S)
        except concurrent.futures.TimeoutError:
            logger.error("model '%s': vLLM has not ended within %g s", self._model, _STOP_S)
        except Exception as error:  # of any kind: the engine raises its own
            logger.error("model '%s': vLLM has not ended cleanly: %s", self._model, error)
        self._end()

    def _end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_STOP_S)  # a daemon: what blocks there must not block the server

    # on the thread of the engine ----------------------------------------------

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    async def _start(self, arguments: Arguments) -> None:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        mark_server()
        # They import torch.
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        from backend_vllm.stats import stat_logger

        try:
            made = AsyncEngineArgs(**(_defaults() | arguments))
            self.config = made.create_engine_config()
        except Exception as error:
            raise self._refused(error) from error
        lora = self.config.lora_config
        self.counts = Counts(
            self.config.model_config.max_model_len, 0 if lora is None else lora.max_loras
        )
        try:
            self.llm = AsyncLLM.from_vllm_config(
                self.config,
                stat_loggers=None if made.disable_log_stats else [stat_logger(self.counts)],
                enable_log_requests=made.enable_log_requests,
                disable_log_stats=True,  # vLLM's own loggers: they share one registry in the process
            )
        except Exception as error:
            raise internal(
                f"model '{self._model}': vLLM cannot start: {_in_one_line(error)}; the log of vLLM's "
                "processes has the reason"
            ) from error

    def _refused(self, error: Exception) -> CoreError:
        return invalid(f"model '{self._model}': vLLM refuses '{self._file}': {_in_one_line(error)}")

    async def _stop(self) -> None:
        own = {asyncio.current_task(), self.llm.output_handler}
        tasks = asyncio.all_tasks() - own
        for each in tasks:
            each.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_S / 2)
        self.llm.shutdown()
        # It ends itself once more when it is collected, which must not be at the end of Python.
        self.llm = None


def _defaults() -> Arguments:
    """Return arguments that hold unless model.json has them."""
    return _STRUCTURES if importlib.util.find_spec("llguidance") is not None else {}


def _new_loop() -> asyncio.AbstractEventLoop:
    if importlib.util.find_spec("uvloop") is not None:
        import uvloop

        made: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return made
    return asyncio.new_event_loop()


def _in_one_line(error: BaseException) -> str:
    """Return the text of an exception in one line, which for pydantic's has the key and the value."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return " ".join(str(error).split()) or type(error).__name__
    found = []
    for each in errors():
        key = str(each["loc"][0]) if each["loc"] else ""
        said = str(each["msg"]).removeprefix("Value error, ")
        found.append(f"'{key}' is {each['input']!r:.80}: {said}" if key else said)
    return "; ".join(dict.fromkeys(found))
