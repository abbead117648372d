"""How many requests to one step may run at a time: `max_inflight_requests`.

Only what follows a decoupled step begins more than once in a run; its other answers wait here, in their
order, and the model that makes them waits too, as it does for a slow client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from core.request import InferenceRequest


class Slots:
    """The slots of one step of a run. Loop thread only.

    most   at least 1
    """

    def __init__(self, most: int):
        self._free = most
        self._waiting: deque[Callable[[], None]] = deque()
        self._held: list[InferenceRequest] = []  # whose answers wait
        self._giving = False

    @property
    def waiting(self) -> bool:
        """Whether something has not begun yet."""
        return bool(self._waiting)

    def take(self, start: Callable[[], None], asked: InferenceRequest | None) -> None:
        """Call `start` once a slot is free, now or in `give_back`.

        asked   the request whose answer this is; held until nothing waits
        """
        if self._free:
            self._free -= 1
            start()
            return
        self._waiting.append(start)
        if asked is not None and not asked.held:
            asked.hold()
            self._held.append(asked)

    def give_back(self) -> None:
        """What was started has ended: the next begins."""
        self._free += 1
        # What begins may end at once and come here again: a loop, for thousands may wait.
        if self._giving:
            return
        self._giving = True
        while self._free and self._waiting:
            self._free -= 1
            self._waiting.popleft()()
        self._giving = False
        if not self._waiting:
            self._resume()

    def clear(self) -> None:
        """Nothing is to begin any more."""
        self._waiting.clear()
        self._resume()

    def _resume(self) -> None:
        held, self._held = self._held, []
        for request in held:
            request.resume()
