"""The files of the page, as bytes with the headers of their responses. Imports no server library."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

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
PAGE = "index.html"
_WEB = resources.files(__package__).joinpath("web")


@cache
def names() -> frozenset[str]:
    """Return the names of the scripts, styles and pictures of the page; its HTML is not one of them."""
    found = (each.name for each in _WEB.iterdir())
    return frozenset(name for name in found if name != PAGE and Path(name).suffix in _TYPES)


@cache
def content(name: str) -> tuple[Mapping[str, str], bytes]:
    """Return headers and body of the response with a file: PAGE, or one of `names`."""
    headers = {
        "Content-Type": _TYPES[Path(name).suffix],
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-cache",
    }
    return headers, _WEB.joinpath(name).read_bytes()
