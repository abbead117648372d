"""Responses of the router itself, in the form of the v2 protocol."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson


def response(
    status: int,
    body: bytes,
    *,
    content_type: str = "application/json",
    close: bool = False,
    without_body: bool = False,
    retry_after_s: int | None = None,
) -> bytes:
    """Return the bytes of a response.

    close          whether the connection ends with it
    without_body   whether it is for HEAD, which gets the size of the body only
    """
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    if body:
        lines.append(f"Content-Type: {content_type}")
    lines.append(f"Content-Length: {len(body)}")
    if retry_after_s is not None:
        lines.append(f"Retry-After: {retry_after_s}")
    if close:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode() + (b"" if without_body else body)


def json_body(value: Any) -> bytes:
    """Return a value as JSON."""
    return orjson.dumps(value)


def error_body(text: str) -> bytes:
    """Return the body of an error in the form of the v2 protocol."""
    return orjson.dumps({"error": text})
