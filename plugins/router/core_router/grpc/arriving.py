"""Arriving: the calls whose message has not come as a whole.

Call ─► [Arriving] ─► each second: those that the client does not go on with end
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from core_router.grpc.statuses import DEADLINE_EXCEEDED

if TYPE_CHECKING:
    from core_router.grpc.call import Call

STEP = 64 * 1024
"""Bytes of a message with which a client goes on. Fewer would let it hold what the router keeps for ever."""
_MOST_ENDED = 1000  # calls in a second: the others have time, too


class Arriving:
    """The calls of a port, in the order in which their clients went on with them. Event loop only."""

    def __init__(self) -> None:
        self._calls: OrderedDict[Call, float] = OrderedDict()

    def note(self, call: Call, now_s: float) -> None:
        """Add a call, or note that its client has gone on with it."""
        self._calls[call] = now_s
        self._calls.move_to_end(call)

    def leave(self, call: Call) -> None:
        """Forget a call: its message has come, or it has ended."""
        self._calls.pop(call, None)

    def expire(self, now_s: float, client_s: float) -> None:
        """End the calls whose clients have not gone on with them for too long."""
        for _ in range(_MOST_ENDED):
            call, since_s = next(iter(self._calls.items()), (None, now_s))
            if call is None or now_s - since_s <= client_s:
                return
            self.leave(call)
            text = f"the next {STEP // 1024} KiB of the message, or its end, did not arrive"
            call.fail(DEADLINE_EXCEEDED, f"{text} in --client-timeout-secs={client_s:g} s")
