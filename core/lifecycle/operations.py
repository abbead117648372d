"""Operations: tasks that continue after the client that started them has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Operations:
    """The running operations. Not thread-safe: call from the event loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """Start an operation and return its result, or raise its error. If cancelled, it runs on alone."""
        return await asyncio.shield(self.begin(operation))

    def begin(self, operation: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start an operation and return its task, without waiting for it."""
        task = self._loop.create_task(operation)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def __len__(self) -> int:
        return len(self._tasks)
