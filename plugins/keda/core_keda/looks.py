"""Looks: the metrics of the server, collected once for all who ask at about the same time.

Scaler ─► [Looks] ─► metrics of all workers.  A collection asks every worker: callers must not repeat it at
will.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

from core.telemetry.families import Family

KEPT_S = 0.25  # for which a look is repeated, as a load report is

Families = Mapping[str, Family]
"""Name of a metric → its family."""


class Looks:
    """Looks at the metrics of one server. Not thread-safe: call from the event loop only.

    collect   returns every metric family
    clock_s   monotonic time in seconds
    """

    def __init__(
        self,
        collect: Callable[[], Awaitable[Iterable[Family]]],
        clock_s: Callable[[], float] = time.monotonic,
    ):
        self._collect = collect
        self._clock_s = clock_s
        self._began_s = float("-inf")
        self._look: asyncio.Task[Families] | None = None  # the last one, perhaps under way

    async def families(self) -> Families:
        """Return the metrics of a look that began at most KEPT_S ago, or is under way.

        Raises what `collect` raises: for as long, everyone gets the same error.
        """
        now_s = self._clock_s()
        look = self._look
        if look is None or (look.done() and now_s - self._began_s >= KEPT_S):
            self._began_s = now_s
            look = self._look = asyncio.ensure_future(self._taken())
        return await asyncio.shield(look)  # a caller that leaves does not end the look of others

    async def _taken(self) -> Families:
        return {each.name: each for each in await self._collect()}
