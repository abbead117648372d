"""Backoff: when to restart a child that has died: at once, then after growing pauses."""

from __future__ import annotations

PATIENCE_S = 1.0  # the longest pause that requests wait for; a longer pause refuses them
_FIRST_S = 0.1
_LONGEST_S = 30.0


class Backoff:
    """Pauses before the next start of one instance."""

    def __init__(self) -> None:
        self._failures = 0  # since a child has worked

    def worked(self) -> None:
        """Reset the pauses, because a child has executed something."""
        self._failures = 0

    def failed(self) -> float:
        """Record that a child died or could not start. Return the seconds to wait before the next start."""
        self._failures += 1
        if self._failures == 1:
            return 0.0
        return float(min(_LONGEST_S, _FIRST_S * 2 ** min(self._failures - 2, 20)))
