"""Why the router refuses a request over HTTP: bytes that are no head, and a body without room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_router.http.heads import CHUNKED, MOST_BYTES, BadHead

if TYPE_CHECKING:
    from core_router.options import Limits


def no_head(first: bytes) -> BadHead:
    """Return the error for bytes that begin with `first` and have no complete head."""
    if first.isupper():
        return BadHead(431, f"the head of the request is larger than {MOST_BYTES} bytes")
    return BadHead(400, "these bytes are not HTTP/1.1")


def without_room(body_size: int, limits: Limits) -> tuple[int, str, int | None]:
    """Return status, text and seconds to wait for a body that names the model, and is not kept."""
    text = "the model in the body decides which server gets it, but the router has no room for the body"
    if body_size == CHUNKED:
        most = limits.kept_body_bytes
        return 413, f"{text}: --kept-body-bytes={most} in chunks; send it with Content-Length", None
    if body_size > (most := limits.named_body_bytes):
        return (
            413,
            f"{text}: {most} bytes at most, of --kept-bytes={limits.kept_bytes}; raise that",
            None,
        )
    return 503, f"{text} now: --kept-bytes={limits.kept_bytes} of all requests", 1
