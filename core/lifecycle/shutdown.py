"""Shutdown: finishes requests in flight, then unloads every model, within one deadline."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sized

from core.lifecycle.host import Host
from core.lifecycle.model_registry import ModelRegistry
from core.pipeline import Chain
from core.repository import ModelDirectory

logger = logging.getLogger("core")

_LOOK_S = 0.02  # seconds between two checks of the requests in flight
_REMOVE_S = 2.0  # seconds to remove the directories of remaining versions, after the deadline


class Deadline:
    """The remaining time, measured by `clock` and awaited by `sleep`."""

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
        """Wait: True when `done`, False at the deadline. Once a second, call `say` with the seconds left."""
        last: int | None = None
        while True:
            if (seconds := math.ceil(self.left_s)) != last:
                last = seconds
                say(seconds)
            if done():
                return True
            if not self.left_s:
                return False
            await self._sleep(min(_LOOK_S, self.left_s))


async def shut_down(
    registry: ModelRegistry,
    operations: Sized,
    host: Host,
    deadline: Deadline,
) -> int:
    """Wait for operations and requests, unload all models, and then end the worker threads.

    No chain refuses anything before every chain is idle: a request of one model may still need
    another (ensembles, models that call models). The server refuses new requests from
    outside. Returns the number of versions and operations that did not end in time. They and their
    threads go on, although the directories of these versions are removed; a second call can continue.
    """

    def busy() -> int:
        return sum(version.in_flight > 0 for version in registry.alive())

    def say_busy(seconds: int) -> None:
        logger.info(
            "Timeout %d: Found %d model versions that have in-flight inferences", seconds, busy()
        )
        for version in registry.alive():
            if version.in_flight:
                logger.info(
                    "Model '%s' (version %d) has %d in-flight inferences",
                    version.name,
                    version.version,
                    version.in_flight,
                )

    def say_alive(seconds: int) -> None:
        logger.info("Timeout %d: Found %d live models", seconds, len(registry.alive()))

    def idle() -> bool:
        if not operations and not busy():
            return True
        _let_wait_no_longer(registry)
        return False

    if await deadline.wait(idle, say_busy):
        logger.info("All models are stopped, unloading models")
        for model in registry.models.values():
            model.unload()
        await deadline.wait(lambda: not registry.alive(), say_alive)
    left = registry.alive()
    if removing := [
        asyncio.ensure_future(_remove(directory, host))
        for directory in {version.source.directory for version in left}
    ]:
        # A hanging task may hold a directory or all threads; then the end of the process removes it.
        await asyncio.wait(removing, timeout=_REMOVE_S)
    if not left and not operations:
        host.close()
    return len(left) + len(operations)


async def _remove(found: ModelDirectory, host: Host) -> None:
    """Remove the copy that a version read, and the copies from which it was made.

    A user's own folder stays.
    """
    directory: ModelDirectory | None = found
    while directory is not None:
        await host.run(directory.remove)
        directory = directory.origin


def _let_wait_no_longer(registry: ModelRegistry) -> None:
    """End idle sequences, whose slots waiting sequences then get, if no model executes a request.

    Then no idle sequence can continue. A running execution may still send requests, because models may
    call models.
    """
    chains = [each.chain for each in registry.alive() if each.in_flight]
    waiting = [each for each in chains if isinstance(each, Chain)]
    if not any(any(each.executing.values()) for each in waiting):
        for each in filter(lambda chain: chain.pending, waiting):
            each.end_waiting_sequences()
