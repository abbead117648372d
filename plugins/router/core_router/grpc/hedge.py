"""Hedge: the second copy of one unary call.

UnaryCall ─► [Hedge] ─► after a while: an Attempt at another server ─► the first good answer counts

It gets the news of the copy until the copy has an answer.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

from core_router.grpc.native.blocks import status_of
from core_router.grpc.statuses import NOT_FOUND, OK, as_http

if TYPE_CHECKING:
    from core_router.choice.hedging import Hedging
    from core_router.grpc.native.link import ServerLink
    from core_router.grpc.pool import Attempt
    from core_router.grpc.port import GrpcPort
    from core_router.grpc.unary import UnaryCall


def fails(status: int) -> bool:
    """Return whether another server may do better than one that has answered with this status."""
    return status == NOT_FOUND or as_http(status) >= 500


class Hedge:
    """One call's wait for its copy, and the copy until one of them has an answer. Event loop only.

    is_sent   whether there is a copy
    """

    def __init__(self, port: GrpcPort, call: UnaryCall, hedging: Hedging, delay_s: float):
        self.is_sent = False
        self._port = port
        self._call = call
        self._hedging = hedging
        self._attempt: Attempt | None = None
        self._is_over = False
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._send)

    # for the call ---------------------------------------------------------

    def end(self) -> None:
        """Cancel the copy: the first attempt has an answer, or the client has left."""
        self._timer.cancel()
        attempt = self._forget()
        if attempt is not None:
            attempt.abandon(self._port)

    def take_over(self) -> bool:
        """Leave the call to the copy: the first attempt has failed. Return False if there is no copy."""
        self._timer.cancel()
        attempt = self._forget()
        if attempt is None:
            return False
        self._call.replace(attempt)
        return True

    def _send(self) -> None:
        if self._is_over or not self._call.may_be_copied() or not self._hedging.take():
            return
        self.is_sent = True  # now: a copy may fail at once
        attempt = self._call.copy_for(self)
        if not self._is_over:
            self._attempt = attempt

    def _forget(self) -> Attempt | None:
        self._is_over, self.is_sent = True, False
        attempt, self._attempt = self._attempt, None
        return attempt

    def _failed(self, attempt: Attempt) -> None:
        attempt.server_model.failed(monotonic())
        attempt.server_model.server.checks_now.set()
        self._forget()

    # for the attempt ------------------------------------------------------

    def connected(self, attempt: Attempt, link: ServerLink) -> None:
        if not self._is_over:
            self._call.send(attempt, link)

    def not_connected(self, attempt: Attempt, reason: str) -> None:
        if not self._is_over:
            self._failed(attempt)

    def answered(
        self,
        attempt: Attempt,
        head: bytes | None,
        data: bytes | None,
        trailers: bytes | None,
        is_over: bool,
    ) -> None:
        """Have the copy answer the client, if it has succeeded.

        An error of its server, such as RESOURCE_EXHAUSTED, says nothing about the first one.
        """
        if self._is_over:
            return
        if data is None:
            attempt.head = head or attempt.head
            if not is_over:
                return  # what follows decides
            status = status_of(trailers if trailers is not None else attempt.head)
            if status != OK:
                now_s = monotonic()
                attempt.server_model.done(as_http(status), now_s - attempt.sent_s, now_s)
                self._forget()
                return
        self._hedging.won += 1
        self.take_over()
        self._call.answered(attempt, head or attempt.head, data, trailers, is_over)

    def lost(self, attempt: Attempt, error: int) -> None:
        if not self._is_over:
            self._failed(attempt)

    def move(self, attempt: Attempt) -> None:
        if not self._is_over and attempt.link is not None:
            attempt.link.cancel(attempt.id)
            self._failed(attempt)

    def may_write(self, attempt: Attempt) -> None:
        pass
