"""Managing: what a program tells a server, and asks it, beside requests for inference.

core.embedded.Server is one of it.  Methods wait for the loop thread, where everything happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from core.embedded.mailbox import LoopThread
from core.errors import CoreError
from core.request import NEWEST
from core.server import InferenceServer as Inner
from core.telemetry.families import Family

T = TypeVar("T")


class Managing:
    """Any thread but the server's, for methods that load or unload; any thread for all others.

    Raises CoreError(UNAVAILABLE) before the start and after the end.
    """

    def load(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Load or reload a model of a repository; needs model_control_mode="explicit".

        parameters   `config` (JSON text) and `file:<path>` (bytes) go before the repository
        """
        self._call(lambda: self._inner.models.load(name, dict(parameters or {})))

    def unload(self, name: str, *, unload_dependents: bool = False) -> None:
        """Unload a model of a repository; needs model_control_mode="explicit"."""
        self._call(lambda: self._inner.models.unload(name, unload_dependents))

    async def load_async(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        """`load` for a coroutine on any loop."""
        await self._await(lambda: self._inner.models.load(name, dict(parameters or {})))

    async def unload_async(self, name: str, *, unload_dependents: bool = False) -> None:
        """`unload` for a coroutine on any loop."""
        await self._await(lambda: self._inner.models.unload(name, unload_dependents))

    def ready(self, model: str = "", version: int = NEWEST) -> bool:
        """Whether requests can be served, by a model or by all. Never raises: what is not there is not
        ready."""
        try:
            return self._ask(
                lambda: (
                    self._inner.models.is_ready(model, version)
                    if model
                    else self._inner.control.health.ready_here()
                )
            )
        except CoreError:
            return False

    def index(self, *, ready_only: bool = False) -> list[dict[str, Any]]:
        """The models of the repositories and the bound functions, with version, state and reason.

        On the server's own thread, of remote repositories what was seen last.
        """
        if not self._opened().is_here:
            self._call(self._inner.manager.look)
        return self._ask(lambda: self._inner.manager.index(ready_only))

    def metadata(self, model: str = "", version: int = NEWEST) -> dict[str, Any]:
        """Of a model (inputs, outputs, versions), or of the server."""
        return self._ask(
            lambda: self._inner.models.metadata(model, version) if model else self._inner.metadata()
        )

    def config(self, model: str, version: int = NEWEST) -> dict[str, Any]:
        """The complete configuration, as the JSON object that the protocol shows."""
        return self._ask(lambda: self._inner.models.config_json(model, version))

    def statistics(self, model: str = "", version: int = NEWEST) -> list[dict[str, Any]]:
        """Counts and times of each ready version, of one model or of all."""
        return self._ask(lambda: self._inner.control.health.statistics_here(model, version))

    def metrics(self) -> list[Family]:
        """Every metric with its samples of now."""
        return self._ask(lambda: self._inner.control.health.metrics_here())

    # of who inherits -------------------------------------------------------------

    @property
    def _inner(self) -> Inner:
        """The server on the loop."""
        raise NotImplementedError

    def _opened(self) -> LoopThread:
        """The thread of the loop. Raises CoreError(UNAVAILABLE) when there is none."""
        raise NotImplementedError

    def _call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a coroutine gives that runs on the loop."""
        return self._opened().call(make())

    async def _await(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The same for who is on another loop, or on that one."""
        return await asyncio.wrap_future(self._opened().start(make()))

    def _ask(self, function: Callable[[], T]) -> T:
        """What a function gives that the loop's thread calls; itself if it is on that thread."""
        thread = self._opened()
        if thread.is_here:
            return function()

        async def call() -> T:
            return function()

        return thread.call(call())
