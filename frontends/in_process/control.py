"""The control operations of a server: load, unload, readiness, metadata, statistics, metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from core.errors import CoreError, unavailable
from core.request import NEWEST
from core.server import InferenceServer
from core.telemetry.families import Family
from frontends.in_process.lifetime import ServerLifetime
from frontends.in_process.loop_thread import LoopThread

T = TypeVar("T")


class ControlMethods:
    """The control operations; Server inherits them.

    Call `load` and `unload` from any thread except the server's, all others from any thread. All except
    `ready` raise CoreError(UNAVAILABLE) before the start and after the end of the server.
    """

    _thread: LoopThread | None
    _closed: str  # why calls are refused
    _lifetime: ServerLifetime

    def load(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Load or reload a model of a repository, and return when it is ready. Raises CoreError if it fails.

        Needs model_control_mode="explicit".

        parameters   `config` (JSON text) and `file:<path>` (bytes) replace the repository's
        """
        self._run(lambda: self._inner.models.load(name, dict(parameters or {})))

    def unload(self, name: str, *, unload_dependents: bool = False) -> None:
        """Unload a model of a repository and the ensembles that need it. Unknown names are no error.

        Needs model_control_mode="explicit".

        unload_dependents   whether to unload the models that an ensemble calls, too, except those that were
                            loaded by name or that another ensemble needs
        """
        self._run(lambda: self._inner.models.unload(name, unload_dependents))

    async def load_async(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Like `load`, for a coroutine on any loop."""
        await self._await(lambda: self._inner.models.load(name, dict(parameters or {})))

    async def unload_async(self, name: str, *, unload_dependents: bool = False) -> None:
        """Like `unload`, for a coroutine on any loop."""
        await self._await(lambda: self._inner.models.unload(name, unload_dependents))

    def ready(self, model: str = "", version: int = NEWEST) -> bool:
        """Return whether a model, or the server, can serve requests. Never raises."""
        try:
            return self._call(
                lambda: (
                    self._inner.models.is_ready(model, version)
                    if model
                    else self._inner.control.health.ready_here()
                )
            )
        except CoreError:
            return False

    async def check_async(self) -> bool:
        """Ask the instances of every loaded version. Return whether each of these versions can serve.

        For a coroutine on any loop. An instance that is lost, such as one whose GPU has failed, says no.
        """
        return await self._await(lambda: self._inner.manager.check_all())

    def index(self, *, ready_only: bool = False) -> list[dict[str, Any]]:
        """List the models of the repositories and the bound functions, with version, state and reason.

        On the server's own thread, the list of a cloud repository is the one of the last poll. Raises
        CoreError if a repository cannot be read.
        """
        if not self._running_thread().is_current:
            self._run(self._inner.manager.look)
        return self._call(lambda: self._inner.manager.index(ready_only))

    def metadata(self, model: str = "", version: int = NEWEST) -> dict[str, Any]:
        """Return the metadata of a model (inputs, outputs, versions) or of the server."""
        return self._call(
            lambda: self._inner.models.metadata(model, version) if model else self._inner.metadata()
        )

    def config(self, model: str, version: int = NEWEST) -> dict[str, Any]:
        """Return the complete configuration, as the JSON object of the protocol."""
        return self._call(lambda: self._inner.models.config_json(model, version))

    def statistics(self, model: str = "", version: int = NEWEST) -> list[dict[str, Any]]:
        """Return counts and times of each ready version, of all models or of one, which must be ready."""
        return self._call(lambda: self._inner.control.health.statistics_here(model, version))

    def metrics(self) -> list[Family]:
        """Return every metric family with its current samples."""
        return self._call(lambda: self._inner.control.health.metrics_here())

    @property
    def _inner(self) -> InferenceServer:
        return self._lifetime.server

    def _running_thread(self) -> LoopThread:
        """Return the thread of the loop. Raises CoreError(UNAVAILABLE) if the server does not run."""
        if (thread := self._thread) is None:
            raise unavailable(self._closed)
        return thread

    def _run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine that `make` returns on the server's loop; wait, and return its result."""
        return self._running_thread().run(make())

    async def _await(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine that `make` returns on the server's loop; await its result on this loop."""
        return await asyncio.wrap_future(self._running_thread().start(make()))

    def _call(self, function: Callable[[], T]) -> T:
        """Call a function on the thread of the server's loop, wait for it, and return its result."""
        thread = self._running_thread()
        if thread.is_current:
            return function()

        async def call() -> T:
            return function()

        return thread.run(call())
