"""Hedge: the second copy of one request over HTTP.

ForwardedRequest ─► [Hedge] ─► after a while: a copy at another server ─► the first good response counts

It is the client of the copy until the copy has a response.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core_router.choice.hedging import Hedging
    from core_router.http.client import ClientConnection
    from core_router.http.forward import ForwardedRequest
    from core_router.http.heads import ResponseHead


def fails(status: int) -> bool:
    """Return whether another server may do better than one that has answered with this status."""
    return status >= 500 or status == 404


class Hedge:
    """One request's wait for its copy, and the copy until one of them has a response. Event loop only.

    is_sent   whether there is a copy
    """

    def __init__(
        self, hedging: Hedging, first: ForwardedRequest, client: ClientConnection, delay_s: float
    ):
        self.is_sent = False
        self._hedging = hedging
        self._first: ForwardedRequest | None = first
        self._client = client
        self._copy: ForwardedRequest | None = None
        self._has_won = False
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._send)

    # for the first request ------------------------------------------------

    def end(self) -> None:
        """Cancel the copy: the first request has a response, or its client has left."""
        self._timer.cancel()
        self._first, copy, self._copy = None, self._copy, None
        if copy is not None:
            copy.cancel()

    def take_over(self) -> bool:
        """Leave the request to the copy: the first one has failed. Return False if there is no copy."""
        self._timer.cancel()
        first, self._first = self._first, None
        copy, self._copy = self._copy, None
        if first is None or copy is None:
            return False
        self._has_won = True
        copy.replace(first, self._client)
        return True

    def _send(self) -> None:
        first = self._first
        if first is None or not first.may_be_copied() or not self._hedging.take():
            return
        self.is_sent = True  # now: a copy may fail at once
        self._copy = first.copy_for(self)
        if self._first is None:
            self._fail()

    def _fail(self) -> None:
        """Forget the copy: the first request goes on alone."""
        self.is_sent = False
        self._first = self._copy = None

    # as the client of the copy --------------------------------------------

    def closes(self, head: ResponseHead) -> bool:
        """Have the copy answer the client, if it has succeeded.

        An error of its server, such as 429, says nothing about the first one.
        """
        if self._has_won:
            return self._client.closes(head)
        if head.status >= 400 or self._first is None:
            self._fail()
            return False
        self._hedging.won += 1
        self.take_over()
        return self._client.closes(head)

    def write(self, data: bytes) -> None:
        if self._has_won:
            self._client.write(data)

    def complete(self, last: bytes, closes: bool) -> None:
        if self._has_won:
            self._client.complete(last, closes)

    def refuse(self, status: int, text: str, retry_after_s: int | None = None) -> None:
        self._fail()

    def abort(self) -> None:
        self._fail()

    def begin_tunnel(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass
