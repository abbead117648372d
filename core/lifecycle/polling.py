"""Poller: looks at the repositories again and again, and follows what has changed.

ModelManager, in control mode poll ─► [Poller] ─► Roster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from core.lifecycle.look import REST_S, Changes
from core.lifecycle.operations import Operations

logger = logging.getLogger("core")


class Poller:
    """Not thread-safe: call from the event loop only.

    compare      find out what has changed
    apply        load and unload what has changed, if it has not changed again since
    operations   that both belong to: the end of the server waits for them
    sleep        wait that many seconds
    period_s     between two looks
    """

    def __init__(
        self,
        compare: Callable[[], Coroutine[Any, Any, Changes]],
        apply: Callable[[Changes], Coroutine[Any, Any, None]],
        operations: Operations,
        sleep: Callable[[float], Awaitable[None]],
        period_s: float,
    ):
        self._compare = compare
        self._apply = apply
        self._operations = operations
        self._sleep = sleep
        self._period_s = period_s
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def start(self) -> None:
        """Poll from now on."""
        self._task = asyncio.get_running_loop().create_task(self._forever())

    def stop(self) -> None:
        """Poll no more. What a poll has begun goes on."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    async def _forever(self) -> None:
        while True:
            await self._sleep(self._period_s)
            await self.poll()

    async def poll(self) -> None:
        """Look, and once more after a while if something has changed. Errors are logged."""
        try:
            seen = None if self._stopped else await self._operations.run(self._compare())
            if seen:
                # Not a part of the operation: the end need not wait for it.
                await self._sleep(min(REST_S, self._period_s))
                if not self._stopped:
                    await self._operations.run(self._apply(seen))
        except OSError as error:
            logger.error("polling the model repositories failed: %s", error)
        except Exception:
            logger.exception("polling the model repositories failed")
