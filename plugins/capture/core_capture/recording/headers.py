"""Headers without secrets."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from core_capture.records.record import words_of

SECRET = frozenset(
    (
        "authorization",
        "cookie",
        "proxy-authorization",
        "set-cookie",
        "x-api-key",
        "x-amz-security-token",
    )
)
"""Fields whose values are never recorded."""

REDACTED = "(redacted)"
MOST_HEADS = 256  # whose redacted form is kept


class HeaderRedaction:
    """Replaces the values of secret header fields. Thread-safe.

    names     fields beside SECRET, in any case
    request   returns the head of a request without secrets and its query, one character for each byte
    answer    returns that of a response
    """

    def __init__(self, names: Iterable[str] = ()):
        self._names = SECRET | {name.lower() for name in names}
        # Clients repeat their heads.
        self.request = lru_cache(MOST_HEADS)(self._request)
        self.answer = lru_cache(MOST_HEADS)(self._answer)

    def _request(self, head: bytes) -> str:
        start, _, fields = head.decode("latin-1").partition("\r\n")
        method, target, version = words_of(start)
        # POST ignores a query, and it may hold a secret.
        return f"{method} {target.partition('?')[0]} {version}\r\n{self._fields(fields)}"

    def _answer(self, head: bytes) -> str:
        return self._fields(head.decode("latin-1"))

    def _fields(self, fields: str) -> str:
        lines = fields.split("\r\n")
        for number, line in enumerate(lines):
            name = line.partition(":")[0]
            if name.lower() in self._names:
                lines[number] = f"{name}: {REDACTED}"
        return "\r\n".join(lines)
