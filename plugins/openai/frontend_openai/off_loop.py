"""off_loop: does work that takes long on another thread, so that other clients do not wait for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from core_generate.chat import SlowTemplate, quick_only

from frontends.http.background import begin, turn

# Bytes of a body, or of arrays, that are read or written in some milliseconds at most.
MOST_ON_LOOP = 16 * 1024

P = ParamSpec("P")
Result = TypeVar("Result")


async def off_loop(
    size: int, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
) -> Result:
    """Return what work(*args, **kwargs) returns; on another thread if it takes long. Event loop only.

    size   bytes that the work reads or writes
    work   with a chat template, it may run twice: after 20 ms the template is stopped, and all begins again
           on another thread. From then on, work with this template goes there at once
    A conversation of 10,000 messages takes tenths of a second, a chat template up to one.
    """
    if size <= MOST_ON_LOOP:
        try:
            with quick_only():
                return work(*args, **kwargs)
        except SlowTemplate:
            pass
    async with turn():
        return await begin(work, *args, **kwargs)
