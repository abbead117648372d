"""Running: core.server.Server on its loop, from the start to the end, with functions and frontends.

core.embedded.Server ─► loop thread: [Running] ─► core.server.Server, frontends
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from core import plugins
from core.backend import Backend
from core.embedded.asking import Desk
from core.embedded.functions import Bound, Shelf, backends_of
from core.embedded.mailbox import STOPPED
from core.errors import CoreError, Kind, invalid, not_found
from core.frontend import Frontend
from core.options import Options
from core.server import InferenceServer

logger = logging.getLogger("core")

_LONGEST_END_S = 5.0  # for what should be quick when every model is gone


class Running:
    """A server inside a program, on the loop that runs it. Loop thread only.

    server   what frontends and methods of core.embedded.Server speak to; there from `start` on
    """

    server: InferenceServer

    def __init__(self, options: Options, desk: Desk):
        self._options = options
        self._desk = desk
        self._shelf = Shelf()
        self._functions = backends_of(self._shelf, desk)
        self._binding = asyncio.Lock()
        self._frontends: dict[str, Frontend] = {}

    async def start(self) -> None:
        """Load what the control mode says; `stop` is to follow, also when this raises.

        Raises CoreError when the server cannot be, or when a model does not load and
        options.exit_on_error.
        """
        _load_hooks()
        self.server = InferenceServer(
            self._options, find_backend=self._find_backend, repositories=[self._shelf]
        )
        plugins.ask("core_server_starting", server=self.server)
        await self.server.start()
        self._desk.open(self.server)

    def _find_backend(self, name: str) -> Backend:
        """Worker thread."""
        directory = self._options.backend_directory
        return self._functions.get(name) or plugins.backend(name, directory)

    async def bind(self, bound: Bound) -> None:
        """Load a function as a model, in place of what was bound to its name.

        Raises CoreError when it cannot load; what served serves on.
        """
        async with self._binding:
            before = self._shelf.bound.get(bound.name)
            self._shelf.put(bound)
            try:
                await self.server.manager.bring(bound.name)
            except BaseException:
                if before is not None:
                    self._shelf.put(before)
                else:
                    self._shelf.remove(bound.name)
                    with contextlib.suppress(CoreError):  # the server ends
                        await self.server.manager.take_out(bound.name)
                raise

    async def unbind(self, name: str) -> None:
        """Unload a function. Returns when it takes no requests; those accepted finish behind."""
        async with self._binding:
            if name not in self._shelf.bound:
                names = ", ".join(sorted(self._shelf.bound)) or "none"
                raise not_found(f"no function is bound as '{name}' (bound: {names})")
            self._shelf.remove(name)
            await self.server.manager.take_out(name)

    async def serve(self, ports: Mapping[str, int | None], address: str) -> dict[str, int]:
        """Open frontends; the port of each.

        ports   frontend → port, 0 for any that is free, None for that of the options
        Raises CoreError when one is not installed, is open already, or cannot listen; then none of
        them is open.
        """
        for name in ports:
            if name in self._frontends:
                raise invalid(f"frontend '{name}' is open already")
        changes: dict[str, Any] = {f"{name}_address": address for name in ports}
        changes |= {f"{name}_port": port for name, port in ports.items() if port is not None}
        changes |= {f"allow_{name}": True for name in ports}
        before = self.server.options
        self.server.options = replace(before, **changes)
        opened: dict[str, Frontend] = {}
        try:
            for name in ports:
                opened[name] = self._frontend(name)
                await opened[name].start()
        except BaseException:
            for frontend in opened.values():
                await frontend.stop(0.0)
            self.server.options = before
            raise
        self._frontends |= opened
        return {name: int(getattr(each, "port", 0)) for name, each in opened.items()}

    def _frontend(self, name: str) -> Frontend:
        installed = plugins.frontends()
        if name not in installed:
            raise not_found(
                f"no frontend named '{name}' (installed: {', '.join(installed) or 'none'})"
            )
        made: Frontend = installed[name].load()(self.server)
        return made

    async def stop(self, timeout_s: float) -> bool:
        """Take nothing new, finish what is in flight, unload everything; whether all of it ended.

        Who still waits for an answer after `timeout_s` gets an error, and what a model does then goes
        on, on threads that are left behind.
        """
        end_s = time.monotonic() + timeout_s
        self._desk.close(STOPPED)
        frontends, self._frontends = self._frontends, {}
        await asyncio.gather(*(each.stop(timeout_s) for each in frontends.values()))
        left = 0
        if hasattr(self, "server"):  # else the start came to nothing
            left = await self.server.stop(max(0.0, end_s - time.monotonic()))
            self._desk.give_up("the server has stopped before the model answered")
            plugins.tell("core_server_stopping", server=self.server)
        if left:
            logger.error(
                "%d model versions still had requests in flight %s s after the server was told to "
                "stop; their threads are left behind",
                left,
                timeout_s,
            )
            return False
        executors = asyncio.get_running_loop().shutdown_default_executor()
        await asyncio.wait_for(executors, _LONGEST_END_S)
        return True


@cache
def _load_hooks() -> None:
    """Once for all servers of this process."""
    plugins.load_hooks()


def checked_ports(ports: Mapping[str, int | None]) -> dict[str, int | None]:
    """Those that were given, or all with the ports of the options. Raises CoreError(INVALID)."""
    given = {name: port for name, port in ports.items() if port is not None}
    for name, port in given.items():
        if not isinstance(port, int) or not 0 <= port <= 65535:
            raise CoreError(Kind.INVALID, f"{name}_port={port!r}: give a number from 0 to 65535")
    return dict(given or ports)
