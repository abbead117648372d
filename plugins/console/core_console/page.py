"""Page: the console for a process that is no model server, such as a router before several.

look of the process ─► Hub ─► [Page] ─► files and events ─► its HTTP port

The entry point `page` of the group `core.console` names the class, so that no process has to import this
distribution. Nothing here imports a server library.

The process serves its files below the path /console, and these beside them, as JSON but for the events:

    GET /console           file("")
    GET /console/{name}    file(name)
    GET /console/stream    events(…), with the headers of Page.EVENTS
    GET /console/session   name, version, caller, may and routes as in routes.py; what is missing is not there
    GET /console/notices   {"notices": notices()}, if the session has may.read_log

`offers("GET /servers")` of the session makes it the page of a router: web/fleet.js.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from core_console.hub import Hub
from core_console.notices import Notices
from core_console.process import process
from core_console.web_files import PAGE, content, names


class Page:
    """The page over the data of another process than a model server. Event loop only."""

    EVENTS: Mapping[str, str] = {
        "Content-Type": "text/event-stream; charset=utf-8",
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",  # a proxy that collects events would delay each one
    }

    def __init__(self, look: Callable[[], Awaitable[dict[str, Any]]], logger: str):
        """Keep the last warnings and errors of a logger, until `close`.

        look     returns what hub.Source.look does; what is left out is empty. Called once a second while a
                 page is open
        logger   name of the logger
        """
        self._look = look
        self._hub = Hub(self)
        self._notices = Notices(logger)
        self._notices.attach()

    def file(self, name: str) -> tuple[Mapping[str, str], bytes] | None:
        """Return headers and body of a file, "" for the page itself; None if there is none of that name."""
        if name and name not in names():
            return None
        return content(name or PAGE)

    async def events(self, check: Callable[[], object]) -> AsyncGenerator[bytes, None]:
        """Yield the whole state, then what has changed, each second until `close`.

        check   called before each event; it raises CoreError if the caller may not read on
        Raises CoreError(UNAVAILABLE) after `close`. Close the iterator when the client has gone.
        """
        page = await self._hub.subscribe(check)
        try:
            yield await page.first()
            async for event in page:
                yield event
        finally:
            await page.aclose()

    def notices(self) -> list[dict[str, Any]]:
        """Return the last warnings and errors, the latest first."""
        return self._notices.listed()

    async def look(self) -> dict[str, Any]:
        """Return the state, for the hub."""
        found = await self._look()
        own = {"processes": [process()], "silent": [], "noticed": self._notices.count}
        return {"idle": [], **found, **own}

    def rest(self) -> None:
        """Nothing runs between two looks."""

    def close(self) -> None:
        """End all events; keep no more warnings."""
        self._hub.close()
        self._notices.close()
