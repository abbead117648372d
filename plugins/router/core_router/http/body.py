"""IncomingBody: the body of a request that has not come as a whole with its head.

pieces ─► [IncomingBody] ─► kept until the last one, or passed on one by one
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_router.http.chunks import MOST_CHUNKS, ChunkScanner
from core_router.http.heads import CHUNKED
from core_router.pieces import Pieces

if TYPE_CHECKING:
    from core_router.http.heads import RequestHead
    from core_router.router import Router


class IncomingBody:
    """One body. Event loop only; call `release` at its end.

    is_kept   whether `message` returns all pieces so far
    """

    def __init__(self, router: Router, head: RequestHead, most: int):
        """Begin a body. most: bytes of it that are kept, as far as --kept-bytes has room for them."""
        self._router = router
        self._pieces = Pieces()
        self._pieces.add(head.passed_on)
        self._chunks = ChunkScanner(MOST_CHUNKS) if head.body_size == CHUNKED else None
        self._left = head.body_size
        self._kept = 0
        self._most = most
        # Bytes count when they come: a client must not hold room for bytes that it never sends.
        self.is_kept = self._has_room(max(self._left, 0))

    def take(self, data: bytes, at: int) -> tuple[bytes, bool]:
        """Take the bytes of `data` from `at` on. Return those of this body, and whether they end it.

        Raises BadChunk.
        """
        if self._chunks is not None:
            end = self._chunks.feed(data, at)
            is_last = self._chunks.done
        else:
            end = min(len(data), at + self._left)
            self._left -= end - at
            is_last = not self._left
        self.is_kept = self.is_kept and self._keep(end - at)
        piece = data if at == 0 and end == len(data) else data[at:end]
        if self.is_kept:
            self._pieces.add(piece)
        return piece, is_last

    def message(self) -> bytes:
        """Return the head for a server and the pieces that were kept, and forget them."""
        return self._pieces.join()

    def release(self) -> None:
        """Forget the pieces: another server cannot get the request any more."""
        self._router.kept_bytes -= self._kept
        self._kept = 0
        self._pieces = Pieces()

    def _keep(self, size: int) -> bool:
        """Count bytes as kept. Return False if there would be too many."""
        if not self._has_room(size):
            return False
        self._kept += size
        self._router.kept_bytes += size
        return True

    def _has_room(self, size: int) -> bool:
        limits, kept = self._router.limits, self._router.kept_bytes
        return self._kept + size <= self._most and kept + size <= limits.kept_bytes
