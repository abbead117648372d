"""The end of a server: what a request gets that is not done within --exit-timeout-secs."""

from __future__ import annotations

from core.errors import CoreError, unavailable

# For the last bytes of streams that are ended; a client that does not read loses them.
GOODBYE_S = 1.0


def not_done(timeout_s: float) -> CoreError:
    """Return the error of a request that is still running when the server stops waiting for it."""
    return unavailable(
        f"the server is shutting down, and the request was not done within --exit-timeout-secs={timeout_s:g}"
    )
