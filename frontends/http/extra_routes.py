"""HttpRoutes: routes that plugins add to the HTTP port.

core_server_starting ─► HttpRoutes.of(server).add(rows) ─► Router of the HTTP port.  Roles, restrictions,
limits, CORS, deadlines and the access log apply to them as to all routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from core.errors import internal
from core.server import InferenceServer
from frontends.http.message import HttpResponse
from frontends.http.route import Route

Refusals = tuple[str, Callable[[HttpResponse], HttpResponse]]


class HttpRoutes:
    """The added routes of one server. Not thread-safe: call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._rows: list[Route] = []
        self._refusals: list[Refusals] = []
        self._read = False
        self._ends: list[Callable[[], object]] = []

    @staticmethod
    def of(server: InferenceServer) -> HttpRoutes:
        """Return the routes of a server: the same object at every call."""
        return server.shared(HttpRoutes)

    @property
    def rows(self) -> tuple[Route, ...]:
        """Return the added routes, in their order. After the first read of `rows`, none can be added."""
        self._read = True
        return tuple(self._rows)

    @property
    def refusals(self) -> tuple[Refusals, ...]:
        """Return (start of paths as in `add`, what changes their refusals), in the order of the calls."""
        return tuple(self._refusals)

    def add(
        self,
        rows: Iterable[Route],
        below: str = "",
        refused: Callable[[HttpResponse], HttpResponse] | None = None,
    ) -> None:
        """Add routes: before the HTTP port opens, so in the hook core_server_starting.

        rows      results of `frontends.http.route.row`; the port's own routes come first
        below     regular expression for the start of the paths whose refusals `refused` changes, such as
                  "/v1/"; the first that fits counts. "" for all, but never inference on the fast path
        refused   returns a response of status 400 and more in another form: it gets {"error": text}, or
                  what a service of such a path has returned, maybe without "error" (/v2/health/ready)
        Raises CoreError(INTERNAL) if the port has its routes already.
        """
        if self._read:
            raise internal(
                "routes are added too late: the HTTP port has read them; add them in core_server_starting"
            )
        self._rows += rows
        if refused is not None:
            self._refusals.append((below, refused))

    def on_end(self, listener: Callable[[], object]) -> None:
        """Call `listener` when the HTTP port begins to stop: it ends responses that would wait for long."""
        self._ends.append(listener)

    def end(self) -> None:
        """Call the listeners of `on_end`. The HTTP port does so before it waits for open requests."""
        for listener in self._ends:
            listener()

    async def close(self) -> None:
        """Forget the routes, because the server has stopped."""
        self._ends.clear()
        self._rows.clear()
        self._refusals.clear()
