"""Call: one call of a client, from its request to its end.

ClientLink ─► [Call] ─► kept request … response or status of the router ─► ClientLink
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_router.grpc.native.link import Receiver
from core_router.grpc.statuses import HEAD, status_block
from core_router.pieces import Pieces

if TYPE_CHECKING:
    from core_router.grpc.native.link import ClientLink
    from core_router.grpc.port import GrpcPort


class Call(Receiver):
    """What all calls have in common. Event loop only.

    link, id   its stream
    head       block of its head
    """

    def __init__(self, port: GrpcPort, link: ClientLink, id: int, head: bytes) -> None:
        self.link = link
        self.id = id
        self.head = head
        self._port = port
        self._router = port.router
        self._data = b""  # of the request, without _more; all of it if is_whole
        self._more: Pieces | None = None  # of the request, with _data, until they are joined
        self._kept = 0  # bytes of it that the router counts
        self._awaited = 0  # number of kept bytes with which the client goes on; 0 if it need not
        self._is_whole = False
        self._is_over = False
        self._has_responded = False  # whether the client has a part of the response

    def _keep(self, data: bytes, is_whole: bool) -> bool:
        """Append bytes of the request. Return False if they are too many to be kept."""
        router = self._router
        self._append(data, is_whole)
        size = len(data)
        limits = router.limits
        if (
            self._kept + size > limits.kept_body_bytes
            or router.kept_bytes + size > limits.kept_bytes
        ):
            return False
        self._kept += size
        router.kept_bytes += size
        return True

    def _append(self, data: bytes, is_whole: bool) -> None:
        """Append bytes of the request, without a look at what came before them."""
        self._is_whole = is_whole
        if not self._data:
            self._data = data
            return
        if data:
            if self._more is None:
                self._more = Pieces()
                self._more.add(self._data)
            self._more.add(data)
        if is_whole:
            self._join()

    def _join(self) -> None:
        """Have all bytes that have come in `_data`."""
        if self._more is not None:
            self._data = self._more.join()
            self._more = None

    def fail(self, status: int, text: str) -> None:
        """End the call with a status of the router."""
        if self._is_over:
            return
        if self._has_responded:
            self.link.finish(self.id, status_block(status, text))
        else:
            self.link.respond(self.id, HEAD + status_block(status, text), True)
        self._end()

    def answer(self, data: bytes) -> None:
        """End the call with a response of the router. data: its message, serialized."""
        if self._is_over:
            return
        self.link.respond(self.id, HEAD, False)
        self.link.write(self.id, b"\0" + len(data).to_bytes(4, "big") + data)
        self.link.finish(self.id, status_block(0))
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self._data, self._more = b"", None
        if self._awaited:
            self._port.arriving.leave(self)
        self._release()

    def _release(self) -> None:
        """Forget the request: another server cannot get it any more."""
        self._router.kept_bytes -= self._kept
        self._kept = 0
        if not self._is_whole:
            self._data = b""
