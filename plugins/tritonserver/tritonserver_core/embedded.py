"""EmbeddedServer: core.Server with what Triton's modules need beside it.

tritonserver.Server, tritonfrontend ─► [EmbeddedServer] ─► loop thread ─► InferenceServer
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping
from typing import Any

from core import plugins
from core.errors import already_exists, not_found, unavailable
from core.frontend import Frontend
from core.request import InferenceRequest
from frontends.in_process import Server
from frontends.in_process.loop_thread import LoopThread
from frontends.in_process.pending import Dispatcher, current_dispatcher
from frontends.metrics.text import render
from tritonserver_core.calls import Call, Inbox
from tritonserver_core.registered import RegisteredFolders

_FRONTEND_TIMEOUT_S = 1.0  # for the connections of a frontend that stops


class EmbeddedServer(Server):
    """A server of this process. Any thread, unless core.Server says otherwise.

    folders    the repositories that `register` and `unregister` change; None if they are fixed
    complete   after `stop`: whether all requests have ended in time
    """

    def __init__(self, folders: RegisteredFolders | None, **options: Any):
        super().__init__(**options)
        self.folders = folders
        self.complete = True
        self._opened: list[Frontend] = []

    def send(self, request: InferenceRequest, inbox: Inbox, on_device: bool = False) -> Call:
        """Send a request whose responses go to an inbox. Return it when the server has accepted it.

        Raises the CoreError of a refusal.
        """
        own: Dispatcher | None = getattr(self, "_dispatcher", None)
        if own is None or (self._thread is None and current_dispatcher.get() is not own):
            raise unavailable(self._closed)
        call = Call(own, request, inbox, on_device)
        call.send()
        return call

    def live(self) -> bool:
        """Return whether the server runs."""
        return self._call(lambda: self._inner.control.health.live())

    def metrics_text(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return render(self.metrics())

    def poll(self) -> None:
        """Load what has changed in the repositories. Raises CoreError(UNAVAILABLE) in another mode."""
        self._run(lambda: self._inner.control.repository.poll())

    def open(self, name: str, options: Mapping[str, Any]) -> Frontend:
        """Open a frontend of that name; return it when it listens.

        options   those that differ from the server's, by their names with underscores
        Raises CoreError(NOT_FOUND) if no such frontend is installed, and what it raises if it cannot listen.
        """
        return self._run(lambda: self._open(name, options))

    async def _open(self, name: str, options: Mapping[str, Any]) -> Frontend:
        found = plugins.frontends().get(name)
        if found is None:
            known = ", ".join(plugins.frontends()) or "none"
            raise not_found(f"no frontend named '{name}' (installed: {known})")
        server = self._inner
        previous = server.options
        server.options = previous.changed(**{f"allow_{name}": True, **options})
        frontend: Frontend | None = None
        try:
            frontend = found.load()(server)
            await frontend.start()
        except BaseException:
            if frontend is not None:
                await frontend.stop(0.0)
            server.options = previous
            raise
        self._opened.append(frontend)
        return frontend

    def close(self, frontend: Frontend, timeout_s: float = _FRONTEND_TIMEOUT_S) -> None:
        """Close a frontend; do nothing if it is closed already, or the server has stopped."""
        if frontend in self._opened:
            self._opened.remove(frontend)
            self._run(lambda: frontend.stop(timeout_s))

    def register(self, path: str, names: Mapping[str, str]) -> None:
        """Add a folder with models; nothing is loaded.

        names   name of a folder in it → name of its model, if that differs
        Raises CoreError: UNAVAILABLE if repositories are fixed, ALREADY_EXISTS, INTERNAL without the folder.
        """
        folders = self._registered()
        if path in folders.paths():
            raise already_exists(f"model repository '{path}' is already registered")
        folders.add(path, names)

    def unregister(self, path: str) -> None:
        """Remove a folder with models; what is loaded stays. Raises CoreError(NOT_FOUND) if it is none."""
        folders = self._registered()
        if path not in folders.paths():
            known = "', '".join(folders.paths()) or "none"
            raise not_found(f"model repository '{path}' is not registered (registered: '{known}')")
        folders.remove(path)

    def _registered(self) -> RegisteredFolders:
        self._running_thread()
        if self.folders is None:
            raise unavailable(
                "repositories can be registered only with ModelControlMode.EXPLICIT and without namespaces"
            )
        return self.folders

    def _end(self, thread: LoopThread, timeout_s: float) -> None:
        """Close the frontends, then the server; note whether all requests have ended in time."""
        opened, self._opened = self._opened, []
        self.complete = False
        try:
            if opened:
                thread.run(_stop_all(opened))
            self.complete = thread.run(self._lifetime.stop(timeout_s))
        finally:
            thread.end(complete=self.complete)


def _stop_all(opened: list[Frontend]) -> Coroutine[Any, Any, None]:
    async def stop() -> None:
        with contextlib.suppress(Exception):
            await asyncio.gather(*(each.stop(_FRONTEND_TIMEOUT_S) for each in opened))

    return stop()
