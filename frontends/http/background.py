"""Work that takes more than a few milliseconds, done beside the event loop.

What is done here lets go of the GIL in compiled code, or is short between two bytecodes: a thread that holds
the GIL keeps the event loop waiting just as well.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

LARGE_BYTES = (
    256 * 1024
)  # of JSON, or of a tensor: from here on reading and writing take milliseconds

# Bodies that are unpacked and read at a time: each of them may take a multiple of what was sent for it.
MOST_READ = max(2, min(8, (os.cpu_count() or 2) // 2))

P = ParamSpec("P")
Result = TypeVar("Result")

_threads = ThreadPoolExecutor(2 * MOST_READ, thread_name_prefix="http")
_turns: WeakKeyDictionary[Any, asyncio.Semaphore] = WeakKeyDictionary()


class TakesLong(Exception):
    """Something takes more than a few milliseconds: it is for another thread."""


def begin(work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[Result]:
    """work(*args, **kwargs) on another thread; cancelling the future does not end it. Event loop thread."""
    loop = asyncio.get_running_loop()
    return loop.run_in_executor(_threads, lambda: work(*args, **kwargs))


def turn() -> asyncio.Semaphore:
    """What to enter for as long as a large body is unpacked and read; first come, first served."""
    loop = asyncio.get_running_loop()
    if (found := _turns.get(loop)) is None:
        found = _turns[loop] = asyncio.Semaphore(MOST_READ)
    return found
