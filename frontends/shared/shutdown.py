"""Shutdown: the error of a request that is not done within --exit-timeout-secs."""

from __future__ import annotations

from core.errors import CoreError, unavailable

# Time to send the last bytes of ended streams; a client that does not read loses them.
GOODBYE_S = 1.0


def not_done(timeout_s: float) -> CoreError:
    """Return CoreError(UNAVAILABLE) for a request that still runs `timeout_s` after the shutdown began."""
    return unavailable(
        f"the server is shutting down, and the request was not done within --exit-timeout-secs={timeout_s:g}"
    )
