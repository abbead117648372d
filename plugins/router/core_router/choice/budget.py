"""RetryBudget: retries are a bounded share of the requests, so an outage does not multiply the load."""

from __future__ import annotations

SHARE = 0.2
"""Retries per request that the budget permits in the long run."""
RESERVE = 100.0
"""Retries that are permitted at once, also without requests before them."""


class RetryBudget:
    """A token bucket: each request adds SHARE of a token, each retry takes one. Event loop only."""

    def __init__(self) -> None:
        self._tokens = RESERVE

    def request(self) -> None:
        """Count a request."""
        self._tokens = min(RESERVE, self._tokens + SHARE)

    def take(self) -> bool:
        """Take a token for a retry. Return False if there is none."""
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
