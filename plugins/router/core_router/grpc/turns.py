"""Turns: how many messages the streams of clients may take before other work has its turn.

InferStream ─► [Turns.messages] ─► some of its messages; the rest in the next iteration of the loop
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from core_router.grpc.statuses import INTERNAL

if TYPE_CHECKING:
    from core_router.grpc.infer_stream import InferStream
    from core_router.grpc.messages import MessageScanner

logger = logging.getLogger("core_router")

MOST = 1000
"""Messages of all streams in one iteration of the loop. One read may bring fifty times as many."""
AT_ONCE = 100
"""Messages of one stream, before it waits behind the others."""


class Turns:
    """The turns of all streams of a port. Event loop only.

    call_soon   has the loop call a function in its next iteration
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], Any]) -> None:
        self._call_soon = call_soon
        self._left = MOST
        self._is_scheduled = False
        self._waiting: deque[InferStream] = deque()

    def messages(self, stream: InferStream, scanner: MessageScanner) -> list[bytes]:
        """Return messages of a stream that it takes now. If there are more, its `go_on` is called later."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._begin)
        found = scanner.take(min(self._left, AT_ONCE))
        self._left -= len(found)
        if scanner.has_more and not stream.is_waiting:
            stream.is_waiting = True
            self._waiting.append(stream)
        return found

    def _begin(self) -> None:
        """Begin another iteration with the streams that wait."""
        self._is_scheduled = False
        self._left = MOST
        while self._waiting and self._left:
            stream = self._waiting.popleft()
            stream.is_waiting = False
            try:
                stream.go_on()
            except Exception:
                # The other streams have no part in it.
                logger.exception("a stream over gRPC failed, and ends")
                stream.fail(INTERNAL, "the router failed; see its log")
