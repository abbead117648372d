"""WireRequest: one request as bytes, with the places of the fields that sequences change."""

from __future__ import annotations

from typing import NamedTuple


class WireRequest(NamedTuple):
    """See settings.hpp, Request: -1 for a field that is not there."""

    wire: bytes
    id_at: int = -1
    start_at: int = -1
    end_at: int = -1

    def moved(self, before: bytes) -> WireRequest:
        """Return the request with bytes before it."""
        by = len(before)
        return WireRequest(before + self.wire, *(at + by if at >= 0 else -1 for at in self[1:]))
