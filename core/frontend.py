"""Frontend: the interface for authors of frontends, the class of an entry point in group `core.frontends`.

    [project.entry-points."core.frontends"]
    mqtt = "my_package:MqttFrontend"

Frontends of one server share objects through `server.shared(factory)`: one object per server and factory,
which the server closes when it stops. `server.on_reload(listener)` registers a listener, which the server
calls when it reads its files again.

A frontend reaches the server by InferenceServer only. With `--allow-NAME=false` nothing imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from core.server import InferenceServer


class Frontend(Protocol):
    """One protocol on one port or socket, or what starts and stops with them. Loop thread only.

    name      name of its entry point
    enabled   whether the options enable it; the server never starts a disabled frontend
    """

    name: str

    def __init__(self, server: InferenceServer): ...

    @property
    def enabled(self) -> bool: ...

    async def start(self) -> None:
        """Listen. The server may still load models; ask it whether it is ready.

        Logs "Started … at ADDRESS:PORT", or at a path. Raises CoreError: UNAVAILABLE if it cannot listen,
        INVALID for wrong certificates.
        """

    async def stop(self, timeout_s: float) -> None:
        """Refuse new requests, wait for the running ones, about `timeout_s` at most, then close all.

        Never raises. A second call does nothing.
        """
