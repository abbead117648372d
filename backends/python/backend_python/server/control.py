"""A model's operations on other models: load_model, unload_model and is_model_ready.

model ─► api.models ─► CALL ─► [ModelControl] ─► Server, on the event loop ─► REPLY at the end.
"""

from __future__ import annotations

import asyncio
from binascii import a2b_base64
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from core.config.model_version import parse_version
from core.errors import CoreError

OPERATIONS = frozenset(("load_model", "unload_model", "is_model_ready", "takes_gpu"))


class ModelControl:
    """The control of the server's models by one model of this backend. Thread-safe, unless stated otherwise.

    waits   core.Model's `waits`: lets other models load while this one waits in its initialize
    """

    def __init__(
        self,
        server: Any,
        loop: asyncio.AbstractEventLoop,
        waits: Callable[[], AbstractAsyncContextManager[None]],
    ):
        self._server = server
        self.loop = loop
        self._waits = waits

    def start(
        self, operation: str, arguments: dict[str, Any], reply: Callable[[dict[str, Any]], None]
    ) -> None:
        """Run an operation on the event loop, and call `reply` there with the content of REPLY."""

        async def run() -> None:
            reply(await self.answer(operation, arguments))

        asyncio.run_coroutine_threadsafe(run(), self.loop)

    async def answer(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an operation and return the content of REPLY.

        Not thread-safe: call from the event loop only.
        """
        try:
            if operation == "is_model_ready":
                return {"value": self.ready(**arguments)}
            if operation == "takes_gpu":
                return {"value": self._takes_gpu(**arguments)}
            async with self._waits():
                await (self._load if operation == "load_model" else self._unload)(**arguments)
            return {"value": None}
        except CoreError as error:
            return {"error": error.message}
        except Exception as error:  # arguments of the wrong type: the model's mistake
            return {"error": f"{operation}: {type(error).__name__}: {error}"}

    def ready(self, name: str, version: str) -> bool:
        """Return whether a version ("" for the newest) can serve; False for an unknown one.

        Raise CoreError if `version` is not a number. Not thread-safe: call from the event loop only.
        """
        number = parse_version(str(version))
        try:
            return bool(self._server.is_ready(name, number))
        except CoreError:
            return False

    def _takes_gpu(self, name: str, version: int) -> bool:
        """Return whether a version takes inputs on a GPU without a copy. Raise CoreError if it is unknown."""
        return bool(self._server.takes_device(name, version))

    async def _load(self, name: str, config: str, files: dict[str, str]) -> None:
        parameters: dict[str, Any] = {path: a2b_base64(text) for path, text in files.items()}
        if config:
            parameters["config"] = config
        await self._server.load(name, parameters)

    async def _unload(self, name: str, unload_dependents: bool) -> None:
        await self._server.unload(name, unload_dependents)
