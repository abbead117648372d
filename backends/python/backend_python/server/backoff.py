"""When a child that has died is started again: at once, and ever later if that does not help."""

from __future__ import annotations

PATIENCE_S = 1.0  # what requests wait for at most; a longer pause refuses them
_FIRST_S = 0.1
_LONGEST_S = 30.0


class Backoff:
    """Pauses before the next start of one instance."""

    def __init__(self) -> None:
        self._failures = 0  # since a child has worked

    def worked(self) -> None:
        """A child has executed something."""
        self._failures = 0

    def failed(self) -> float:
        """A child has died, or could not start: seconds until the next is started."""
        self._failures += 1
        if self._failures == 1:
            return 0.0
        return float(min(_LONGEST_S, _FIRST_S * 2 ** min(self._failures - 2, 20)))
