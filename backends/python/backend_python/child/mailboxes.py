"""The mailboxes of a child: frames that have arrived for its calls and were not taken yet."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, Union

Key = Union[int, tuple[int, int]]  # number of a call, or (batch, index) of a GO


class Mailbox:
    """The frames that have arrived for one call and were not taken yet: content and region of each.

    arrived   wakes the coroutine that awaits the next frame; None if no coroutine does
    """

    __slots__ = ("arrived", "frames", "number")

    def __init__(self, number: int):
        self.number = number
        self.frames: deque[tuple[bytes, Any]] = deque()
        self.arrived: Callable[[], object] | None = None


class Mailboxes:
    """The mailboxes of the calls whose last frame has not arrived, and of the expected GOs.

    Not thread-safe, unless stated otherwise: the connection's lock guards them.

    awaited   the mailboxes whose next frame a coroutine awaits
    """

    def __init__(self) -> None:
        self.awaited: set[Mailbox] = set()
        self._open: dict[Key, Mailbox] = {}
        self._number = 0  # of the last call

    def __contains__(self, box: Mailbox) -> bool:
        """Return whether the mailbox is open: the last frame of its call has not arrived. Thread-safe."""
        return box.number in self._open

    def add_call(self) -> Mailbox:
        """Return the mailbox of a new call. The call has the mailbox's number."""
        self._number += 1
        box = self._open[self._number] = Mailbox(self._number)
        return box

    def add_ask(self, key: tuple[int, int]) -> Mailbox:
        """Make and return the mailbox that gets the next GO of a request; `key` is batch and index."""
        box = self._open[key] = Mailbox(0)
        return box

    def forget(self, number: int) -> bool:
        """Close the mailbox of a call: later frames are dropped. Return whether it was open. Thread-safe."""
        return self._open.pop(number, None) is not None

    def deliver(self, key: Key, content: bytes, region: Any, final: bool) -> None:
        """Put a frame into its mailbox. Without a mailbox the frame is dropped."""
        box = self._open.pop(key, None) if final else self._open.get(key)
        if box is not None:
            box.frames.append((content, region))
            self._wake(box)

    def await_next(self, box: Mailbox, arrived: Callable[[], object]) -> None:
        """Call `arrived` when the next frame of a mailbox arrives, or at `wake_all`."""
        box.arrived = arrived
        self.awaited.add(box)

    def stop_awaiting(self, box: Mailbox) -> None:
        """Do not call the `arrived` of a mailbox any more, which `await_next` has set."""
        self.awaited.discard(box)
        box.arrived = None

    def wake_all(self) -> None:
        """Wake every coroutine that awaits a frame, since the channel is closed."""
        for box in list(self.awaited):
            self._wake(box)

    def _wake(self, box: Mailbox) -> None:
        self.awaited.discard(box)
        if box.arrived is not None:
            with contextlib.suppress(RuntimeError):  # its loop has been closed
                box.arrived()
