"""LentRegions: memory whose descriptor another process of the server has; forgotten when it ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core.errors import internal


@contextmanager
def opened_elsewhere(process: int, file: int) -> Iterator[int]:
    """Yield a descriptor of this process for what any process of the server has open.

    file   its number in that process, which may be this one
    Raises CoreError(INTERNAL) when the process has ended or has closed it.
    """
    if process == os.getpid():
        yield file
        return
    try:
        found = os.open(f"/proc/{process}/fd/{file}", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise internal(
            f"memory of worker process {process} cannot be opened: {error.strerror}"
        ) from None
    try:
        yield found
    finally:
        os.close(found)


class LentRegions:
    """Which regions came by way of which process. Not thread-safe: call from the event loop only.

    gone   called with each region whose process has ended: its client's connection has ended with it
    """

    def __init__(self, gone: Callable[[str], None]):
        self._gone = gone
        self._names: dict[int, set[str]] = {}
        self._watched: dict[int, int] = {}  # process → descriptor that says when it ends

    def watch(self, name: str, process: int) -> None:
        """A region has come by way of `process`, which runs."""
        if process == os.getpid():
            return
        self._names.setdefault(process, set()).add(name)
        if process not in self._watched:
            found = self._watched[process] = os.pidfd_open(process)
            asyncio.get_running_loop().add_reader(found, self._ended, process)

    def forget(self, name: str) -> None:
        """The region has been given back."""
        for names in self._names.values():
            names.discard(name)

    def _ended(self, process: int) -> None:
        found = self._watched.pop(process)
        asyncio.get_running_loop().remove_reader(found)
        os.close(found)
        for name in self._names.pop(process, ()):
            self._gone(name)
