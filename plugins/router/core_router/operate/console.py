"""Console: the page /console on the port for operators, if core-web-console is installed.

browser ─► [Console] ─► files of the page; the state of the fleet each second ◄─ Fleet.look

The page is that of another distribution, found by the entry point `page` of the group `core.console`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web

from core import plugins
from core.errors import invalid
from core_router.http.responses import json_body
from core_router.operate.access import refused
from core_router.operate.fleet import Fleet
from frontends.shared.secure import is_local

if TYPE_CHECKING:
    from core_router.operate.access import Access
    from core_router.router import Router

# Name of what the page may do → category of its roles, and whether it is a change.
_MAY = {
    "read_statistics": ("statistics", False),
    "read_models": ("model-repository", False),
    "read_log": ("logging", False),
    "change_load": ("model-repository", True),
    "change_infer": ("inference", True),
}


class Page(Protocol):
    """What the entry point has, called with a function that looks and with the name of a logger."""

    EVENTS: Mapping[str, str]

    def __init__(self, look: Callable[[], Awaitable[dict[str, Any]]], logger: str): ...

    def file(self, name: str) -> tuple[Mapping[str, str], bytes] | None:
        """Return headers and body of a file, "" for the page itself; None if there is none of that name."""

    def events(self, check: Callable[[], object]) -> AsyncGenerator[bytes, None]:
        """Yield events; `check` is called before each."""

    def notices(self) -> list[dict[str, Any]]:
        """Return the last warnings of the logger."""

    def close(self) -> None:
        """End all events."""


def page_of(router: Router) -> Page | None:
    """Return the page.

    None if the options turn it off, or if it is not installed and not demanded.
    Raises CoreError(INVALID) if it is wanted and not installed.
    """
    options = router.options
    wanted = options.console
    if wanted is False or (wanted is None and not is_local(options.admin_address)):
        return None
    found = plugins.installed("core.console").get("page")
    if found is not None:
        page: Page = found.load()(Fleet(router).look, "core_router")
        return page
    if wanted:
        raise invalid("--admin-console=true needs the page: install core-web-console")
    return None


class Console:
    """The routes of the page. Event loop only."""

    def __init__(self, router: Router, access: Access, page: Page):
        self._router = router
        self._access = access
        self._page = page

    def routes(self) -> list[web.RouteDef]:
        """Return the routes. Those of files are open: they are the same for every router."""
        guarded = self._access.guarded
        return [
            web.get("/", self._start),
            web.get("/console", self._file),
            web.get("/console/session", guarded(self._session)),
            web.get("/console/stream", guarded(self._stream, "statistics")),
            web.get("/console/notices", guarded(self._notices, "logging")),
            web.get("/console/{name}", self._file),
        ]

    def close(self) -> None:
        """End all events, so that the port need not wait for them."""
        self._page.close()

    async def _start(self, request: web.Request) -> web.Response:
        if "text/html" not in request.headers.get("Accept", ""):
            return refused(404, "Not Found")
        return web.Response(
            status=307, headers={"Location": "console", "Cache-Control": "no-store"}
        )

    async def _file(self, request: web.Request) -> web.Response:
        found = self._page.file(request.match_info.get("name", ""))
        if found is None:
            return refused(404, "the console has no such file")
        headers, body = found
        return web.Response(body=body, headers=headers)

    async def _session(self, request: web.Request) -> web.Response:
        """Return what the caller may do."""
        access = self._access
        caller = access.caller(request)
        may = {name: access.permits(request, *needs) for name, needs in _MAY.items()}
        routes = ["GET /servers", "GET /shares"] if may["read_statistics"] else []
        if may["change_load"]:
            routes += [f"POST /servers/{{name}}/{what}" for what in ("drain", "resume")]
        found = {
            "name": "router",
            "version": version("core-router"),
            "caller": caller,
            "may": may,
            "control_mode": "explicit",
            "client_port": self._router.ports.http,
            "client_scheme": "https" if self._router.options.http_certificates else "http",
            "grpc_port": self._router.ports.grpc,
            "routes": routes,
        }
        return web.Response(body=json_body(found), content_type="application/json")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Send the state, and each second what has changed, until the browser leaves."""

        def check() -> None:
            self._access.check(request, "statistics", False)

        response = web.StreamResponse(headers=self._page.EVENTS)
        async with aclosing(self._page.events(check)) as events:
            first = await anext(events)  # before the head: the page may be closed
            await response.prepare(request)
            with suppress(ConnectionResetError):
                await response.write(first)
                async for event in events:
                    await response.write(event)
        return response

    async def _notices(self, request: web.Request) -> web.Response:
        """Return the last warnings of the router."""
        body = json_body({"notices": self._page.notices()})
        return web.Response(body=body, content_type="application/json")
