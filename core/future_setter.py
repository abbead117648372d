"""FutureSetter: a callback that sets the result of a future."""

from __future__ import annotations

from asyncio import Future
from typing import Any


class FutureSetter:
    """Callback that sets a future, unless the future is done. Call it on the event loop only.

    An object and not a closure: a compiled coroutine and a function in it refer to each other, so only the
    garbage collector would free them.
    """

    def __init__(self, future: Future[Any]):
        self._future = future

    def __call__(self, outcome: Any = None) -> None:
        """Set the result, or the exception if `outcome` is one; do nothing if the future is done."""
        if self._future.done():
            return
        if isinstance(outcome, BaseException):
            self._future.set_exception(outcome)
        else:
            self._future.set_result(outcome)
