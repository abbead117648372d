"""ServerThread: a server on its own thread and event loop, for tests without coroutines."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from core.backend import Backend
from core.options import Options
from core.server import InferenceServer
from core_testing.patience import PATIENCE_S

T = TypeVar("T")
S = TypeVar("S", bound="ServerThread")


class ServerThread:
    """A server that a `with` statement starts and stops. Call its methods from one thread at a time.

    backend      serves every model and overrides the configurations; None for the installed backends
    repository   folder with the models' folders
    options      options of the server, named with underscores
    """

    def __init__(self, backend: Backend | None, repository: Path, **options: Any):
        self._backend = backend
        self._options = Options.defaults(
            model_repository=[str(repository)], model_control_mode="explicit", **options
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="core-testing")

    def __enter__(self: S) -> S:
        self._thread.start()
        try:
            self._server = self._call(self._start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:  # a backend that hangs must not prevent the end of the process
            self._call(self._server.stop(PATIENCE_S), 2 * PATIENCE_S)
            self._call(self._loop.shutdown_default_executor())
        finally:
            self._end()

    def _end(self) -> None:
        """End the thread and its event loop: a thread that goes on keeps the process alive."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> InferenceServer:
        backend = self._backend
        find = None if backend is None else lambda name: backend
        server = InferenceServer(self._options, find_backend=find)
        await server.start()
        return server

    def _on_loop(self, function: Callable[[], T]) -> T:
        async def act() -> T:
            return function()

        return self._call(act())

    def _call(self, coroutine: Coroutine[Any, Any, T], patience_s: float = 0) -> T:
        patience_s = patience_s or PATIENCE_S
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(patience_s)
        except concurrent.futures.TimeoutError as error:
            raise AssertionError(
                f"nothing came within {patience_s:g} s: a method of the backend does not return, or "
                "a request has been lost"
            ) from error
