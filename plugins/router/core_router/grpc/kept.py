"""KeptBytes: the bytes that one call keeps, counted among those of the router."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core_router.router import Router


class KeptBytes:
    """Bytes of one call. Event loop only; call `release` at its end.

    size   what the call keeps
    most   --kept-bytes, for all calls together
    """

    def __init__(self, router: Router) -> None:
        self.size = 0
        self.most = router.limits.kept_bytes
        self._router = router

    def add(self, size: int) -> None:
        """Count bytes; a negative number forgets some."""
        self.size += size
        self._router.kept_bytes += size

    def are_too_many(self) -> bool:
        """Return whether all calls together keep more than they may."""
        return self._router.kept_bytes > self.most

    def release(self) -> None:
        """Forget all bytes."""
        self.add(-self.size)
