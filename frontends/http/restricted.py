"""Kinds of requests that need a header (`--http-restricted-api`).

Checked for every route by its category before anything else, also before the method.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from frontends.http.errors import refusal
from frontends.http.message import Answer


class Restrictions:
    """category → (header, value) that a request must bring."""

    def __init__(self, required: Mapping[str, tuple[str, str]]):
        self._required = {
            category: (header, value.encode()) for category, (header, value) in required.items()
        }

    def refuse(self, category: str, headers: Mapping[str, str]) -> Answer | None:
        """The answer 403 when the header is missing or has another value; None when it may pass."""
        if (required := self._required.get(category)) is None:
            return None
        header, value = required
        found = headers.get(header, "").encode("utf-8", "surrogateescape")
        # compare_digest: the time must not tell how much of a secret was right
        if hmac.compare_digest(found, value):
            return None
        return refusal(403, f"This API is restricted, expecting header '{header}'")
