"""What goes in and out of a service: a call and its answer, without any engine's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.server import parse_version
from core.tensor import Buffer

JSON_HEADERS = {"Content-Type": "application/json"}
TEXT_HEADERS = {"Content-Type": "text/plain"}


class Call:
    """One HTTP request, complete.

    method      in capitals
    path        as it came, without the query; nothing is percent-decoded
    captures    the named parts of the path, by the route's pattern; None for one that is absent
    headers     a mapping that ignores the case of its keys; `items()` keeps repeated headers
    body        contiguous bytes, b"" for none; still compressed
    """

    __slots__ = ("body", "captures", "headers", "method", "path")

    def __init__(
        self,
        method: str,
        path: str,
        captures: Mapping[str, Any],
        headers: Mapping[str, str],
        body: Buffer = b"",
    ):
        self.method = method
        self.path = path
        self.captures = captures
        self.headers = headers
        self.body = body

    @property
    def model(self) -> str:
        """The model's name in the path; the route has one."""
        name: str = self.captures["model"]
        return name

    @property
    def version(self) -> int:
        """The model's version in the path, -1 for the newest. CoreError(INVALID) if it is none."""
        return parse_version(self.captures["version"] or "")


class Answer:
    """Status, headers and body of an HTTP response."""

    __slots__ = ("body", "headers", "status")

    def __init__(
        self,
        status: int = 200,
        headers: Mapping[str, str] = TEXT_HEADERS,
        body: bytes = b"",
    ):
        self.status = status
        self.headers = headers
        self.body = body

    def __repr__(self) -> str:
        return f"Answer({self.status}, {dict(self.headers)}, {self.body[:200]!r})"
