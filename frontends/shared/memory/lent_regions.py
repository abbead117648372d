"""LentRegions: watches the workers that received the descriptors of lent regions, to notice their end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core.errors import internal


@contextmanager
def opened_elsewhere(process: int, file: int) -> Iterator[int]:
    """Yield a descriptor, valid in this process, of a file that a process of the server has opened.

    file   number of the descriptor in `process`, which may be this process
    Raises CoreError(INTERNAL) if the process has ended or has closed the file.
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
    """Reports lent regions when the process that received their descriptor has ended. Event loop only.

    ended   called with the name of each such region; the connection of its client ended with the process
    """

    def __init__(self, ended: Callable[[str], None]):
        self._ended = ended
        self._names: dict[int, set[str]] = {}
        # Process → descriptor that becomes readable when it ends.
        self._watched: dict[int, int] = {}

    def watch(self, name: str, process: int) -> None:
        """Call `ended` with `name` when the running process `process` ends. Do nothing for this process.

        Raises OSError if the process has ended already, or if this one has no more files.
        """
        if process == os.getpid():
            return
        self._names.setdefault(process, set()).add(name)
        if process not in self._watched:
            found = self._watched[process] = os.pidfd_open(process)
            asyncio.get_running_loop().add_reader(found, self._process_ended, process)

    def forget(self, name: str) -> None:
        """Do not call `ended` for this region any more."""
        for names in self._names.values():
            names.discard(name)

    def _process_ended(self, process: int) -> None:
        found = self._watched.pop(process)
        asyncio.get_running_loop().remove_reader(found)
        os.close(found)
        for name in self._names.pop(process, ()):
            self._ended(name)
