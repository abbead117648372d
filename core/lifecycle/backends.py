"""BackendPool: each backend is opened before its first model and closed after its last."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from core import plugins
from core.backend import Backend
from core.lifecycle.parameters import warn_of_settings

logger = logging.getLogger("core")


class _Opened:
    """One backend of the process. Loop thread."""

    def __init__(self) -> None:
        self.users = 0  # versions that load or run with it
        self.open = False
        self.turn = asyncio.Lock()  # open and close never overlap


class BackendPool:
    """The backends in use, counted. Loop thread; open and close run on worker threads.

    run        calls a blocking function on a worker thread
    find       name → Backend; may import it, so it blocks too
    settings   what --backend-config gave: name, or "" for all → key → value
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
        # By backend and not by name: two names may mean one backend.
        self._opened: dict[Backend, _Opened] = {}
        self._importing = asyncio.Lock()
        self._by_name: dict[str, Backend] = {}  # what `find` gave; it does not change any more
        self._isolated: dict[str, Backend] = {}  # by name too, for models in processes of their own

    async def acquire(self, name: str, isolated: bool = False) -> Backend:
        """The opened backend of that name; `release` it once for each `acquire`.

        isolated   for a model that is to run in processes of its own

        Raises CoreError when no such backend is installed, and what its import or open() raises.
        """
        backend = await self._found(name)
        if isolated and not isinstance(backend, plugins.HostedBackend):
            backend = await self._isolated_of(name, backend)
        opened = self._opened.setdefault(backend, _Opened())
        opened.users += 1
        try:
            async with opened.turn:
                if not opened.open:
                    backend.config = self._config(name, backend)
                    if (runs := plugins.isolated_by(backend)) is not None:
                        runs.config = self._config(name, runs)
                    warn_of_settings(self._own(name, backend), backend)
                    await self._run(backend.open)
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

    async def _isolated_of(self, name: str, backend: Backend) -> Backend:
        if name not in self._isolated:
            found = await self._run(plugins.isolate, backend)
            self._isolated.setdefault(name, found)
        return self._isolated[name]

    def _config(self, name: str, backend: Backend) -> dict[str, str]:
        return {**self._settings.get("", {}), **self._own(name, backend)}

    def _own(self, name: str, backend: Backend) -> dict[str, str]:
        """What is said for it, and not for all."""
        found: dict[str, str] = {}
        base = backend.based_on if isinstance(backend, plugins.HostedBackend) else ""
        for word in (*(plugins.aliases(base) if base else ()), *plugins.aliases(name)):
            found.update(self._settings.get(word, {}))
        return found

    async def release(self, backend: Backend) -> None:
        """One user less; the last closes the backend. An exception of close() is only logged."""
        opened = self._opened[backend]
        opened.users -= 1
        async with opened.turn:
            if opened.users or not opened.open:  # a load came in between, or a release was faster
                return
            opened.open = False
            try:
                await self._run(backend.close)
            except Exception:
                logger.exception("closing backend '%s' failed", backend.name)
