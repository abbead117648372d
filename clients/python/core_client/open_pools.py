"""The open pools: they are closed when the interpreter ends, and abandoned in a forked process."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Protocol


class Closing(Protocol):
    def close_at_exit(self) -> None:
        """Remove the pool's files and close its socket; never raises."""

    def forget(self) -> None:
        """Abandon the pool in a forked process: it belongs to the parent; never raises."""


_open: weakref.WeakSet[Closing] = weakref.WeakSet()


def add(pool: Closing) -> None:
    """Add a pool that was opened."""
    _open.add(pool)


def discard(pool: Closing) -> None:
    """Remove a pool that was closed."""
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
