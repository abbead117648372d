"""The page and its files. They hold nothing of this server, so every caller may read them.

A browser cannot send a token with the address of a page: the page asks for a token, and sends it with its
own requests.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import not_found
from frontends.http.errors import refusal
from frontends.http.message import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from core.server import InferenceServer

# Only files of this server; pictures that the page makes itself.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_PAGE = "index.html"


async def start(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Send a browser to the console; other clients get status 404."""
    if "text/html" not in call.headers.get("Accept", ""):
        return refusal(404, "Not Found")
    return HttpResponse(307, {"Location": "console", "Cache-Control": "no-store"})


async def page(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the page."""
    return file_of(_PAGE)


async def slash(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Send a browser to the path without the slash: the page names its files relative to that."""
    return HttpResponse(307, {"Location": "../console", "Cache-Control": "no-store"})


async def file(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return a script, a style or a picture of the page. Raises CoreError for other files."""
    name = call.captures["file"]
    if name == _PAGE or name not in _names():
        raise not_found(f"the console has no file '{name}'")
    return file_of(name)


@cache
def _names() -> frozenset[str]:
    folder = resources.files(__package__).joinpath("web")
    return frozenset(each.name for each in folder.iterdir() if Path(each.name).suffix in _TYPES)


@cache
def file_of(name: str) -> HttpResponse:
    """Return the response with a file of the folder `web`."""
    return HttpResponse(
        200,
        {
            "Content-Type": _TYPES[Path(name).suffix],
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": "no-cache",
        },
        resources.files(__package__).joinpath("web").joinpath(name).read_bytes(),
    )
