"""Settle: a callback that gives a future its result."""

from __future__ import annotations

from asyncio import Future
from typing import Any


class Settle:
    """Settles a future when it is called, unless it is done. Loop thread only.

    An object and not a closure: a compiled coroutine and a function in it hold each other until the garbage
    collector comes.
    """

    def __init__(self, future: Future[Any]):
        self._future = future

    def __call__(self, outcome: Any = None) -> None:
        """Set the result, or raise the exception that `outcome` is."""
        if self._future.done():
            return
        if isinstance(outcome, BaseException):
            self._future.set_exception(outcome)
        else:
            self._future.set_result(outcome)
