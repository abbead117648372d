"""Lane: a thread that makes calls one after the other.

It has no futures, which cost more than the way to another thread: its calls report their end themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

Call = tuple[Callable[..., None], tuple[Any, ...]]


class Lane:
    """A thread of its own, with the cores of the thread that creates it. Any thread may call `put`."""

    def __init__(self, name: str):
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def put(self, call: Callable[..., None], *arguments: Any) -> None:
        """Make a call on the thread, after those before it. It must not raise."""
        self._calls.put((call, arguments))

    def close(self) -> None:
        """Make the calls that wait, and end the thread. No call may be put from now on."""
        self._calls.put(None)
        self._thread.join()

    def _serve(self) -> None:
        take = self._calls.get
        while (work := take()) is not None:
            call, arguments = work
            call(*arguments)
            # What a batch holds is free before the wait for the next one.
            work = call = arguments = None  # type: ignore[assignment]
