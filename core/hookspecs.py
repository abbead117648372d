"""Hooks for plugins: few, none of them on the way of a request.

A plugin is a module that an entry point of group `core.plugins` names; it implements a hook as

    @core.hookimpl
    def core_server_starting(server): ...

A Backend may carry hooks as methods of the same form. Whatever a plugin wants to see of requests, it
sees through metrics and logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from core.caches import Cache
    from core.server import Server

hookspec = pluggy.HookspecMarker("core")
hookimpl = pluggy.HookimplMarker("core")


@hookspec(firstresult=True)
def core_open_cache(name: str, settings: dict[str, str]) -> Cache | None:
    """Once, on the loop thread, for --cache-config=<name>,<setting>=<value> that core does not know.

    Returns a core.caches.Cache, or None for the name of somebody else. Raises CoreError for settings that
    are wrong, which ends the start.
    """


@hookspec
def core_server_starting(server: Server) -> None:
    """Once, on the loop thread, before frontends open and the first model loads."""


@hookspec
def core_server_stopping(server: Server) -> None:
    """Once, on the loop thread, after the last reply and the last model."""
