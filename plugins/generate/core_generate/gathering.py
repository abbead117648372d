"""Gathering: requests that reach an idle engine together begin together.

generate ─► [Gathering] ─► engine. An engine computes the prompts that it has. One that comes a moment later
waits until these are computed, and its text then ends later than those of the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_S = 0.002  # for which an item is held
QUIET_TURNS = 4  # of the event loop: what it has read becomes an item a turn or two later


class Gathering(Generic[T]):
    """Passes items to `put`. Those for an idle engine wait for a few turns of the event loop that bring none.

    A turn takes some microseconds if there is nothing to do. Items from other threads pass at once.
    """

    def __init__(self, put: Callable[[T], None]):
        self._put = put
        self._held: list[T] = []
        self._until = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None  # that passes what is held

    def add(self, item: T, idle: bool) -> None:
        """Pass an item, later if the engine is idle or others are held."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._put(item)
            return
        if not (idle or self._held):
            self._put(item)
            return
        self._held.append(item)
        if len(self._held) == 1 or loop is not self._loop:  # the other one may have ended
            self._loop = loop
            self._until = time.monotonic() + MOST_S
            loop.call_soon(self._look, loop, len(self._held), 1)

    def _look(self, loop: asyncio.AbstractEventLoop, before: int, quiet: int) -> None:
        """Pass what is held after QUIET_TURNS without a new item, or MOST_S.

        before   how many there were at the last turn
        quiet    turns since a new one came, with this one
        """
        count = len(self._held)
        quiet = quiet + 1 if count == before else 1
        if quiet <= QUIET_TURNS and time.monotonic() < self._until:
            loop.call_soon(self._look, loop, count, quiet)
            return
        held, self._held = self._held, []
        for each in held:
            self._put(each)
