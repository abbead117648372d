"""BackendPool: opens each backend before its first model and closes it after its last."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from core import plugins
from core.backend import Backend
from core.errors import call_author
from core.lifecycle.parameters import warn_of_settings

logger = logging.getLogger("core")


class _Opened:
    """Whether one backend of the process is open, and how many versions use it. Loop thread."""

    def __init__(self) -> None:
        self.users = 0  # versions that load or run with it
        self.open = False
        self.turn = asyncio.Lock()  # open and close never overlap


class BackendPool:
    """The backends that models use, each open while it has users. Loop thread; worker threads open and close.

    run        calls a blocking function on a worker thread
    find       name → Backend; may import it, so it blocks too
    settings   values of --backend-config: backend name, or "" for all → key → value
    """

    def __init__(
        self,
        run: Callable[..., Awaitable[Any]],
        find: Callable[[str], Backend],
        settings: Mapping[str, Mapping[str, str]],
    ):
        self._run = run
        self._find = find
        self._settings = settings
        # Keyed by backend, not by name: two names may mean one backend.
        self._opened: dict[Backend, _Opened] = {}
        self._importing = asyncio.Lock()
        self._by_name: dict[str, Backend] = {}  # results of `find`; they never change
        self._isolated: dict[str, Backend] = {}  # by name, for models in separate processes

    async def acquire(self, name: str, isolated: bool = False) -> Backend:
        """Return the opened backend of that name. The caller must `release` it once for each `acquire`.

        isolated   return one that runs the models of this backend in other processes, if it does not already

        Raises CoreError if no such backend is installed, or if its import or open() raises.
        """
        backend = await self._found(name)
        if isolated and not isinstance(backend, plugins.HostedBackend):
            if name not in self._isolated:
                self._isolated.setdefault(name, await self._run(plugins.isolate, backend))
            backend = self._isolated[name]
        opened = self._opened.setdefault(backend, _Opened())
        opened.users += 1
        try:
            async with opened.turn:
                if not opened.open:
                    backend.config = self._config(name, backend)
                    if (runs := plugins.isolated_by(backend)) is not None:
                        runs.config = self._config(name, runs)
                    warn_of_settings(self._own(name, backend), backend)
                    await self._run(call_author, backend.name, "open", backend.open)
                    opened.open = True
        except BaseException:
            await self.release(backend)
            raise
        return backend

    async def _found(self, name: str) -> Backend:
        if name not in self._by_name:
            async with self._importing:
                if name not in self._by_name:  # while this one waited for its turn
                    self._by_name[name] = await self._run(self._find, name)
        return self._by_name[name]

    def _config(self, name: str, backend: Backend) -> dict[str, str]:
        return {**self._settings.get("", {}), **self._own(name, backend)}

    def _own(self, name: str, backend: Backend) -> dict[str, str]:
        """Return this backend's own settings, and for keys that it lacks those of the one it is based on."""
        found: dict[str, str] = {}
        base = backend.based_on if isinstance(backend, plugins.HostedBackend) else ""
        for word in (*(plugins.aliases(base) if base else ()), *plugins.aliases(name)):
            found.update(self._settings.get(word, {}))
        return found

    async def release(self, backend: Backend) -> None:
        """Remove one user. Close the backend if it was the last; an exception of close() is only logged."""
        opened = self._opened[backend]
        opened.users -= 1
        async with opened.turn:
            if opened.users or not opened.open:  # another load or release came first
                return
            opened.open = False
            try:
                await self._run(backend.close)
            except Exception:
                logger.exception("closing backend '%s' failed", backend.name)
