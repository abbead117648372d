"""StepSlots: limits how many requests to one step run at a time (`max_inflight_requests`).

Only the steps behind a decoupled step start more than once in a run. Further responses of the decoupled step
wait here in their order, and its model is paused, as it is for a slow client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from core.request import InferenceRequest


class StepSlots:
    """The slots of one step of a run. Not thread-safe: call from the event loop only.

    most   number of slots, at least 1
    """

    def __init__(self, most: int):
        self._free = most
        self._waiting: deque[Callable[[], None]] = deque()
        self._paused: list[InferenceRequest] = []  # their responses wait
        self._starting = False

    @property
    def waiting(self) -> bool:
        """Whether a start waits for a slot."""
        return bool(self._waiting)

    def acquire(self, start: Callable[[], None], source: InferenceRequest | None) -> None:
        """Call `start` once a slot is free, now or in `release`.

        source   the request whose response `start` handles; paused while any start waits. Or None
        """
        if self._free:
            self._free -= 1
            start()
            return
        self._waiting.append(start)
        if source is not None and not source.paused:
            source.pause()
            self._paused.append(source)

    def release(self) -> None:
        """Free a slot, and give free slots to what waits. Resume the paused requests if nothing waits."""
        self._free += 1
        # What starts may end at once and call this again. A loop and no recursion: thousands may wait.
        if self._starting:
            return
        self._starting = True
        while self._free and self._waiting:
            self._free -= 1
            self._waiting.popleft()()
        self._starting = False
        if not self._waiting:
            self._resume()

    def clear(self) -> None:
        """Forget the starts that wait, because the run has ended, and resume the paused requests."""
        self._waiting.clear()
        self._resume()

    def _resume(self) -> None:
        paused, self._paused = self._paused, []
        for request in paused:
            request.resume()
