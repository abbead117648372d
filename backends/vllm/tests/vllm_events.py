"""Events: takes the events of one generation."""

import queue

from core.errors import CoreError

TIMEOUT_S = 120


class Events:
    """Takes the events of one generation."""

    def __init__(self):
        self._queue = queue.SimpleQueue()

    def __call__(self, event):
        self._queue.put(event)

    def next(self):
        event = self._queue.get(timeout=TIMEOUT_S)
        if isinstance(event, CoreError):
            raise event
        return event

    def all(self):
        """Return the events up to the last."""
        found = [self.next()]
        while not found[-1].finish:
            found.append(self.next())
        return found

    def is_empty(self):
        return self._queue.empty()
