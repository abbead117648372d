"""Counts: what the router counts beside the requests of each server."""

from __future__ import annotations

REASONS = ("unsent", "lost", "refused")
"""Reasons of another attempt: no connection, the connection ended, the server refused."""


class Counts:
    """Event loop only.

    retries       further attempts by reason
    refused       requests that no server took
    connections   connections that clients have opened
    """

    def __init__(self) -> None:
        self.retries = dict.fromkeys(REASONS, 0)
        self.refused = 0
        self.connections = 0
