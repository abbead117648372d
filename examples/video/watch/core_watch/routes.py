"""The page /watch, and what it shows: a list, events, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import not_found
from core_watch.listeners import BOUNDARY
from core_watch.watching import Watching
from frontends.http.extra_routes import HttpRoutes
from frontends.http.message import EVENT_HEADERS, HttpRequest, HttpResponse
from frontends.http.route import row
from frontends.http.services.metadata import json_answer

if TYPE_CHECKING:
    from core.server import InferenceServer

_PAGE = Path(__file__).with_name("page.html")
_NAME = "(?P<video>[^/]+)"
_MOTION_JPEG = {
    "Content-Type": f"multipart/x-mixed-replace; boundary={BOUNDARY.decode()}",
    "Cache-Control": "no-store",
}


def add_to(server: InferenceServer) -> None:
    """Add the routes to the HTTP port. Call it in core_server_starting."""
    routes = HttpRoutes.of(server)
    routes.add(
        [
            row("GET", "/watch", "inference", page, is_open=True),
            row("GET", "/watch/videos", "inference", videos),
            row("GET", "/watch/events", "inference", events),
            row("GET", f"/watch/videos/{_NAME}/pictures", "inference", pictures),
        ]
    )
    routes.on_end(server.shared(Watching).end)


async def page(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the page."""
    return HttpResponse(200, {"Content-Type": "text/html; charset=utf-8"}, _PAGE.read_bytes())


async def videos(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return what is watched: name, frames, losses, trouble."""
    watched = server.shared(Watching).videos.values()
    return json_answer(
        [
            {"name": v.name, "frames": v.frames, "losses": v.losses, "trouble": v.trouble}
            for v in watched
        ]
    )


async def events(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return an event for each frame of each video: its tracks, its number and time, gaps."""
    return HttpResponse(
        200, EVENT_HEADERS, b": watching\n\n", server.shared(Watching).events.join()
    )


async def pictures(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the newest frames of a video with their tracks drawn, as Motion JPEG."""
    name = call.captures["video"]
    watching = server.shared(Watching)
    if name not in watching.videos:
        known = ", ".join(watching.videos) or "none"
        raise not_found(f"no video '{name}' is watched; --watch names {known}")
    begin = b"--" + BOUNDARY + b"\r\n"
    return HttpResponse(200, _MOTION_JPEG, begin, watching.videos[name].pictures.join())
