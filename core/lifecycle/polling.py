"""Poller: looks at the repositories periodically, and applies the changes.

ModelManager, in control mode poll ─► [Poller] ─► ModelRegistry.
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
    """Polls the repositories. Not thread-safe: call from the event loop only.

    compare      find the changes
    apply        load and unload changed models, unless they have changed again since
    operations   both calls run in it, so that shutdown waits for them
    sleep        wait a number of seconds
    period_s     seconds between two looks
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
        """Start to poll."""
        self._task = asyncio.get_running_loop().create_task(self._forever())

    def stop(self) -> None:
        """Stop polling. Operations that a poll has started continue."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    async def _forever(self) -> None:
        while True:
            await self._sleep(self._period_s)
            await self.poll()

    async def poll(self) -> None:
        """Look once, and again after a delay if something has changed. Errors are logged."""
        try:
            seen = None if self._stopped else await self._operations.run(self._compare())
            if seen:
                # Not a part of the operation: shutdown need not wait for it.
                await self._sleep(min(REST_S, self._period_s))
                if not self._stopped:
                    await self._operations.run(self._apply(seen))
        except OSError as error:
            logger.error("polling the model repositories failed: %s", error)
        except Exception:
            logger.exception("polling the model repositories failed")
