"""Pools that are open: closed when the interpreter ends, forgotten in processes that are forked."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Protocol


class Closing(Protocol):
    def close_at_exit(self) -> None:
        """Leave nothing behind; never raises."""

    def forget(self) -> None:
        """This is another process than that which made it; never raises."""


_open: weakref.WeakSet[Closing] = weakref.WeakSet()


def add(pool: Closing) -> None:
    """A pool has been made."""
    _open.add(pool)


def discard(pool: Closing) -> None:
    """A pool has been closed."""
    _open.discard(pool)


@atexit.register
def _close_all() -> None:
    for pool in list(_open):
        pool.close_at_exit()


def _forget_all() -> None:
    for pool in list(_open):
        pool.forget()
    _open.clear()


os.register_at_fork(after_in_child=_forget_all)
