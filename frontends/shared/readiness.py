"""Readiness: reasons of plugins why a server that could serve wants no more requests.

core_server_starting ─► Readiness.of(server).add(reason) ─► /v2/health/ready, ServerReady, grpc.health.v1

Requests that come all the same are served. Liveness and the readiness of models do not change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from core.server import InferenceServer

Reason = Callable[[], Awaitable[str]]


class Readiness:
    """The reasons of one server. Not thread-safe: call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._reasons: list[Reason] = []

    @staticmethod
    def of(server: InferenceServer) -> Readiness:
        """Return the readiness of a server: the same object at every call."""
        return server.shared(Readiness)

    def add(self, reason: Reason) -> None:
        """Ask `reason` at each question whether the server is ready: it returns "", or why it is not.

        Callers without a token may ask often, so it must be cheap. Its text goes to them.
        """
        self._reasons.append(reason)

    async def objection(self) -> str:
        """Return the first reason why the server wants no more requests; "" if there is none."""
        for each in self._reasons:
            if found := await each():
                return found
        return ""

    async def close(self) -> None:
        """Forget the reasons, because the server has stopped."""
        self._reasons.clear()
