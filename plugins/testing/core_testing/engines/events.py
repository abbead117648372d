"""Events: the events of one generation, one by one, for the tests of an engine."""

from __future__ import annotations

import queue

from core_generate import Event

from core.errors import CoreError
from core_testing.patience import PATIENCE_S


class Events:
    """Takes the events of one generation, on any thread. Recorder also checks their form."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Event | CoreError] = queue.SimpleQueue()

    def __call__(self, event: Event | CoreError) -> None:
        self._queue.put(event)

    def next(self) -> Event:
        """Return the next event.

        Raises the CoreError of a failure, and queue.Empty after PATIENCE_S seconds.
        """
        event = self._queue.get(timeout=PATIENCE_S)
        if isinstance(event, CoreError):
            raise event
        return event

    def all(self) -> list[Event]:
        """Return the events up to the last."""
        found = [self.next()]
        while not found[-1].finish:
            found.append(self.next())
        return found

    def is_empty(self) -> bool:
        return self._queue.empty()
