"""Work that takes more than a few milliseconds, done outside the event loop.

Work started here releases the GIL in compiled code, or holds it only briefly at a time. A thread that holds
the GIL blocks the event loop just as well.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

# Of JSON, or of a tensor: above this, reading and writing take milliseconds.
LARGE_BYTES = 256 * 1024

# Bodies unpacked and read at a time: each may take a multiple of the bytes sent for it.
MOST_READ = max(2, min(8, (os.cpu_count() or 2) // 2))

P = ParamSpec("P")
Result = TypeVar("Result")

_threads = ThreadPoolExecutor(2 * MOST_READ, thread_name_prefix="http")
_turns: WeakKeyDictionary[Any, asyncio.Semaphore] = WeakKeyDictionary()


class TakesLong(Exception):
    """Signals that an operation takes more than a few milliseconds and must run on another thread."""


def begin(work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[Result]:
    """Run work(*args, **kwargs) on another thread and return its future.

    Cancelling the future does not end the work. Not thread-safe: call from the event loop only.
    """
    loop = asyncio.get_running_loop()
    return loop.run_in_executor(_threads, lambda: work(*args, **kwargs))


def turn() -> asyncio.Semaphore:
    """Return the loop's semaphore, with which at most MOST_READ callers read large bodies at a time."""
    loop = asyncio.get_running_loop()
    if (found := _turns.get(loop)) is None:
        found = _turns[loop] = asyncio.Semaphore(MOST_READ)
    return found
