"""What a frontend author reads: the class behind an entry point of group `core.frontends`.

    [project.entry-points."core.frontends"]
    mqtt = "my_package:MqttFrontend"

Frontends of one server share objects through `server.shared(factory)`: one object per server and factory,
which the server closes when it stops. `server.on_reload(listener)` calls a listener
when the server shall read files again.

A frontend speaks to core.server.InferenceServer only. `--allow-NAME=false` keeps
it from being imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from core.server import InferenceServer


class Frontend(Protocol):
    """One protocol on one port. Loop thread only.

    name      as its entry point has it
    enabled   whether the options ask for it; one that is not is never started
    """

    name: str

    def __init__(self, server: InferenceServer): ...

    @property
    def enabled(self) -> bool: ...

    async def start(self) -> None:
        """Listen. The server may still load models; it tells whether it is ready.

        Logs "Started … at ADDRESS:PORT"; raises CoreError(UNAVAILABLE) when it cannot listen.
        """

    async def stop(self, timeout_s: float) -> None:
        """Take nothing new, wait at most `timeout_s` for what is in flight, close everything.

        Never raises; a second call does nothing.
        """
