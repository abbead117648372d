"""Poller: looks at the repositories periodically, and applies the changes.

Polling sees folders while files are copied into them. So it looks twice, and takes only changes that it saw
both times. Files that still grow or still arrive wait for a later look. A folder that is absent only while
it is replaced does not count as gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import CoreError
from core.lifecycle import policy
from core.lifecycle.managed import ManagedModel
from core.lifecycle.operations import Operations
from core.repository import ModelSource
from core.repository.catalog import Survey

logger = logging.getLogger("core")

REST_S = 2.0  # between the two looks; never longer than between two polls


@dataclass(frozen=True)
class Changes:
    """The changes that one look has found.

    changed   name → the source or error that the look found, if it was not tried yet
    gone      wanted models that the repositories no longer hold
    """

    changed: Survey
    gone: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone)

    def at_rest(self, before: Changes) -> Changes:
        """Return those of these changes that an earlier look has found just the same."""
        same = {
            name: found
            for name, found in self.changed.items()
            if name in before.changed and not differs(before.changed[name], found)
        }
        return Changes(same, self.gone & before.gone)


def changes(found: Survey, there: Collection[str], models: Mapping[str, ManagedModel]) -> Changes:
    """Return the changes after a look at all repositories.

    there   models that the repositories hold; `found` also has steps of ensembles that they do not hold

    A failed model is tried again only after it has changed.
    """
    changed = {
        name: each
        for name, each in found.items()
        if differs(models[name].attempt if name in models else None, each)
    }
    gone = {
        name
        for name, model in models.items()
        if model.wanted and name not in there and (name not in found or model.alive())
    }
    return Changes(changed, frozenset(gone))


def differs(last: ModelSource | CoreError | None, found: ModelSource | CoreError) -> bool:
    """Return whether two looks found different things. An override or None (no look) always differs."""
    if isinstance(last, ModelSource) and isinstance(found, ModelSource):
        return not policy.unchanged(last, found)
    if isinstance(last, CoreError) and isinstance(found, CoreError):
        return last.message != found.message
    return True


class Poller:
    """The periodic looks. Loop thread.

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
        """Look once. If something has changed, call `apply` after a delay. Errors are logged."""
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
