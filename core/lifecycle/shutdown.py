"""The end: finish what is in flight, then unload every model, both within one time."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from core.lifecycle.host import Host
from core.lifecycle.roster import Roster
from core.pipeline import Chain
from core.repository import ModelDirectory

logger = logging.getLogger("core")

_LOOK_S = 0.02  # between two looks at what is in flight
_REMOVE_S = 2.0  # for the directories of what is left, after the time has passed


class Deadline:
    """The time that is left: the clock tells it, the sleep passes it."""

    def __init__(
        self,
        timeout_s: float,
        sleep: Callable[[float], Awaitable[None]],
        clock: Callable[[], float],
    ):
        self._sleep = sleep
        self._clock = clock
        self._end = clock() + timeout_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._end - self._clock())

    async def wait(self, done: Callable[[], bool], say: Callable[[int], None]) -> bool:
        """Wait until `done`, at most until the end; once a second `say` gets the seconds left."""
        told: int | None = None
        while True:
            if (seconds := math.ceil(self.left_s)) != told:
                told = seconds
                say(seconds)
            if done():
                return True
            if not self.left_s:
                return False
            await self._sleep(min(_LOOK_S, self.left_s))


async def shut_down(
    roster: Roster, operations: Collection[asyncio.Task[Any]], host: Host, deadline: Deadline
) -> int:
    """Let operations and requests end, unload all models, end the worker threads.

    No chain refuses anything before every chain is idle: a request of one model may still need
    another (ensembles, models that call models). New requests from outside are the server's to
    refuse. Returns the number of versions and operations that were not gone in time; they are left
    as they are, threads included, and a second call can go on.
    """

    def busy() -> int:
        return sum(version.in_flight > 0 for version in roster.alive())

    def say_busy(seconds: int) -> None:
        logger.info(
            "Timeout %d: Found %d model versions that have in-flight inferences", seconds, busy()
        )
        for version in roster.alive():
            if version.in_flight:
                logger.info(
                    "Model '%s' (version %d) has %d in-flight inferences",
                    version.name,
                    version.version,
                    version.in_flight,
                )

    def say_alive(seconds: int) -> None:
        logger.info("Timeout %d: Found %d live models", seconds, len(roster.alive()))

    def idle() -> bool:
        if not operations and not busy():
            return True
        _let_wait_no_longer(roster)
        return False

    if await deadline.wait(idle, say_busy):
        logger.info("All models are stopped, unloading models")
        for model in roster.models.values():
            model.unload()
        await deadline.wait(lambda: not roster.alive(), say_alive)
    left = roster.alive()
    if removing := [
        asyncio.ensure_future(_remove(directory, host))
        for directory in {version.source.directory for version in left}
    ]:
        # What hangs may hold a directory, or every thread; then the end of the process removes it.
        await asyncio.wait(removing, timeout=_REMOVE_S)
    if not left and not operations:
        host.close()
    return len(left) + len(operations)


async def _remove(found: ModelDirectory, host: Host) -> None:
    """Remove a directory, and those that it was made of, from under a version that is left."""
    directory: ModelDirectory | None = found
    while directory is not None:
        await host.run(directory.remove)
        directory = directory.origin


def _let_wait_no_longer(roster: Roster) -> None:
    """Where nothing is executed any more, nobody can go on with a sequence: who waits for its place gets it.

    What is executed may still ask: a model that calls models.
    """
    chains = [each.chain for each in roster.alive() if each.in_flight]
    waiting = [each for each in chains if isinstance(each, Chain)]
    if all(each.in_flight == each.pending for each in waiting):
        for each in waiting:
            each.end_waiting_sequences()
