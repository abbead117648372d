"""The page and its files, as services. They hold nothing of this server, so every caller may read them.

A browser cannot send a token with the address of a page: the page asks for a token, and sends it with its
own requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import not_found
from core_console.web_files import PAGE, content, names
from frontends.http.errors import refusal
from frontends.http.message import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from core.server import InferenceServer


async def start(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Send a browser to the console; other clients get status 404."""
    if "text/html" not in call.headers.get("Accept", ""):
        return refusal(404, "Not Found")
    return HttpResponse(307, {"Location": "console", "Cache-Control": "no-store"})


async def page(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the page."""
    return HttpResponse(200, *content(PAGE))


async def slash(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Send a browser to the path without the slash: the page names its files relative to that."""
    return HttpResponse(307, {"Location": "../console", "Cache-Control": "no-store"})


async def file(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return a script, a style or a picture of the page. Raises CoreError for other files."""
    name = call.captures["file"]
    if name not in names():
        raise not_found(f"the console has no file '{name}'")
    return HttpResponse(200, *content(name))
