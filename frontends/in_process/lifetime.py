"""ServerLifetime: start and stop of an InferenceServer and its frontends on the loop thread.

Server ─► loop thread: [ServerLifetime] ─► InferenceServer, other frontends
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from core import plugins
from core.backend import Backend
from core.errors import CoreError, Kind, invalid, not_found
from core.frontend import Frontend
from core.options import Options
from core.server import InferenceServer
from frontends.in_process.functions.backend import backends_of
from frontends.in_process.functions.binding import BoundFunction
from frontends.in_process.functions.repository import FunctionRepository
from frontends.in_process.loop_thread import STOPPED
from frontends.in_process.pending import Dispatcher

logger = logging.getLogger("core")

_EXECUTOR_TIMEOUT_S = 5.0  # for the threads of the loop's executor, after every model is unloaded


class ServerLifetime:
    """An InferenceServer with its bound functions and open frontends. Loop thread only.

    server   exists once `start` has created it
    """

    server: InferenceServer

    def __init__(self, options: Options, dispatcher: Dispatcher):
        self._options = options
        self._dispatcher = dispatcher
        self._repository = FunctionRepository()
        self._backends = backends_of(self._repository, dispatcher)
        self._binding = asyncio.Lock()
        self._frontends: dict[str, Frontend] = {}
        self._executor = ThreadPoolExecutor(thread_name_prefix="core-executor")

    async def start(self) -> None:
        """Load the models that the control mode names. Call `stop` afterwards, also if this raises.

        Raises CoreError if the server cannot be created, or if a model fails to load and
        options.exit_on_error is set.
        """
        _load_hooks()
        asyncio.get_running_loop().set_default_executor(self._executor)
        self.server = InferenceServer(
            self._options, find_backend=self._find_backend, repositories=[self._repository]
        )
        plugins.ask("core_server_starting", server=self.server)
        await self.server.start()
        self._dispatcher.open(self.server)

    def _find_backend(self, name: str) -> Backend:
        """Return the backend of bound functions of that name, else an installed one. Any thread."""
        directory = self._options.backend_directory
        return self._backends.get(name) or plugins.backend(name, directory)

    async def bind(self, function: BoundFunction) -> None:
        """Load a function as a model. It replaces a function that is bound to the same name.

        Raises CoreError if the function cannot be loaded; then a previous function stays bound.
        """
        async with self._binding:
            previous = self._repository.functions.get(function.name)
            self._repository.put(function)
            try:
                await self.server.manager.bring(function.name)
            except BaseException:
                if previous is not None:
                    self._repository.put(previous)
                else:
                    self._repository.remove(function.name)
                    with contextlib.suppress(CoreError):  # the server stops
                        await self.server.manager.take_out(function.name)
                raise

    async def unbind(self, name: str) -> None:
        """Unload a function. Returns when it refuses new requests; accepted requests finish later.

        Raises CoreError(NOT_FOUND) if no function has that name.
        """
        async with self._binding:
            if name not in self._repository.functions:
                names = ", ".join(sorted(self._repository.functions)) or "none"
                raise not_found(f"no function is bound as '{name}' (bound: {names})")
            self._repository.remove(name)
            await self.server.manager.take_out(name)

    async def serve(self, ports: Mapping[str, int | None], address: str) -> dict[str, int]:
        """Open frontends and return the port of each.

        ports   frontend → port, 0 for any free port, None for the port of the options
        Ports and address go into the options of the server, which stay so after the call.
        Raises CoreError if one is not installed, is already open, or cannot listen; then this call leaves
        none open.
        """
        installed = plugins.frontends()
        for name in ports:
            if name in self._frontends:
                raise invalid(f"frontend '{name}' is open already")
            if name not in installed:
                known = ", ".join(installed) or "none"
                raise not_found(f"no frontend named '{name}' (installed: {known})")
        changes: dict[str, Any] = {f"{name}_address": address for name in ports}
        changes |= {f"{name}_port": port for name, port in ports.items() if port is not None}
        changes |= {f"allow_{name}": True for name in ports}
        previous = self.server.options
        self.server.options = previous.changed(**changes)
        opened: dict[str, Frontend] = {}
        try:
            for name in ports:
                opened[name] = installed[name].load()(self.server)
                await opened[name].start()
        except BaseException:
            for frontend in opened.values():
                await frontend.stop(0.0)
            self.server.options = previous
            raise
        self._frontends |= opened
        return {name: int(getattr(each, "port", 0)) for name, each in opened.items()}

    async def stop(self, timeout_s: float) -> bool:
        """Refuse new requests, finish the accepted ones, and unload all models.

        Requests that have no response after `timeout_s` end with an error. If models still run then, or a
        thread of the loop's executor is busy for 5 s more, return False; else return True.
        """
        end_s = time.monotonic() + timeout_s
        self._dispatcher.close(STOPPED)
        frontends, self._frontends = self._frontends, {}
        await asyncio.gather(*(each.stop(timeout_s) for each in frontends.values()))
        busy_versions = 0
        if hasattr(self, "server"):  # false if `start` failed before
            busy_versions = await self.server.stop(max(0.0, end_s - time.monotonic()))
            self._dispatcher.fail_pending("the server has stopped before the model answered")
            plugins.tell("core_server_stopping", server=self.server)
        if busy_versions:
            logger.error(
                "%d model versions still had requests in flight %s s after the server was told to "
                "stop; their threads are left behind",
                busy_versions,
                timeout_s,
            )
            return False
        if not await self._executor_ends():
            logger.error(
                "a call still ran %s s after the end; its thread is left", _EXECUTOR_TIMEOUT_S
            )
            return False
        return True

    async def _executor_ends(self) -> bool:
        """Return whether the threads of the loop's executor end within _EXECUTOR_TIMEOUT_S.

        asyncio's shutdown_default_executor cannot be used: cancelled, it blocks the loop until they end.
        """
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._executor.shutdown()
            with contextlib.suppress(RuntimeError):  # the loop is closed by now
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=shut_down, daemon=True).start()
        try:
            await asyncio.wait_for(ended.wait(), _EXECUTOR_TIMEOUT_S)
        except asyncio.TimeoutError:
            return False
        return True


@cache
def _load_hooks() -> None:
    """Load the hooks of plugins, once for all servers of this process."""
    plugins.load_hooks()


def checked_ports(ports: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return the entries that have a port. If none has one, return all: the options have their ports then.

    Raises CoreError(INVALID) for a port that is not a number from 0 to 65535.
    """
    given = {name: port for name, port in ports.items() if port is not None}
    for name, port in given.items():
        if not isinstance(port, int) or not 0 <= port <= 65535:
            raise CoreError(Kind.INVALID, f"{name}_port={port!r}: give a number from 0 to 65535")
    return dict(given or ports)
